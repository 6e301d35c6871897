"""
Import ahead of any document what a child would import for it.

Nothing is opened, asked or counted: what is there afterwards is the same for every
document of the same code, environment and model.
"""

from collections.abc import Mapping

from vectorless_rag.pageindex_runtime import indexing, litellm_provider, tracing
from vectorless_rag.pageindex_runtime.tokens import count_tokens


def preload(
    checkout: str, model: str, environ: Mapping[str, str], *, remote: bool
) -> None:
    """
    Import what runs of *model* with the upstream in *checkout* need.

    Args:
        checkout: Folder that holds the patched ``pageindex`` package.
        model: ``provider/name``.
        environ: This process's own; it says whether calls are traced.
        remote: Whether a provider is asked.

    Raises:
        VectorlessRagError: ``upstream_tampered``, or ``internal_error``: LiteLLM
            cannot be imported.
    """
    indexing.load_upstream(checkout)
    # The first text loads the model's tokenizer, if it has one.
    count_tokens("text", model)
    if remote:
        litellm_provider.load()
    if tracing.is_wanted(environ):
        tracing.load()
