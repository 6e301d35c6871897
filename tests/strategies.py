"""Named strategies of the values that stages hand to each other."""

from hypothesis import strategies as st

from vectorless_rag.batching import Batching
from vectorless_rag.errors import Code, Failure
from vectorless_rag.wire import Answer, Found, Limits, Parser, Progress, Request

digests = st.text("0123456789abcdef", min_size=64, max_size=64)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)

# Any text at all: pages of PDF files hold lone surrogates and NUL.
page_texts = st.text(st.characters(), max_size=200)

parsers = st.builds(
    Parser, name=st.sampled_from(["pypdf", "pypdfium2"]), version=st.text(max_size=8)
)

raw_nodes = st.recursive(
    st.fixed_dictionaries({"title": page_texts, "start_index": st.integers(1, 9)}),
    lambda inner: st.fixed_dictionaries({"nodes": st.lists(inner, max_size=3)}),
    max_leaves=6,
)

founds = st.builds(
    Found,
    route=st.sampled_from(["flash", "standard", "shortcut"]),
    tree=st.lists(raw_nodes, max_size=4).map(tuple),
    pages=st.lists(page_texts, max_size=4).map(tuple),
    parser=parsers,
)

shown_texts = st.text(st.characters(exclude_categories=("C", "Z")), max_size=30)
failures = st.builds(Failure, code=st.sampled_from(Code), detail=shown_texts)

answers = st.builds(
    Answer,
    found=st.none() | founds,
    failure=st.none() | failures,
    notes=st.dictionaries(st.text(max_size=8), st.integers(0, 1000), max_size=3),
)

limits = st.builds(
    Limits,
    max_output_tokens=st.integers(64, 4096),
    call_timeout_s=st.integers(1, 60),
    call_attempts=st.integers(1, 5),
    concurrency=st.integers(1, 64),
    provider_concurrency=st.integers(1, 64),
    max_pages=st.integers(1, 5000),
    memory_bytes=st.integers(2**28, 2**33),
)

requests = st.builds(
    Request,
    attempt_id=st.text(min_size=1, max_size=20),
    parent_pid=st.integers(1, 2**22),
    document_path=st.text(max_size=30),
    document_sha256=digests,
    checkout=st.text(max_size=30),
    mode=st.sampled_from(["auto", "flash", "standard"]),
    model=st.just("offline/extractive"),
    api_base=st.none() | st.text(max_size=20),
    ledger_url=st.just("sqlite:///ledger.sqlite3"),
    budgets=st.lists(st.text(max_size=10), max_size=3).map(tuple),
    limits=limits,
    gate_dir=st.text(max_size=20),
    journal_dir=st.none() | st.text(max_size=20),
    journal_days=st.integers(1, 365),
    replay=st.booleans(),
    trace_content=st.booleans(),
    prices_json=st.just("{}"),
    allow_unpriced=st.booleans(),
    billed_statuses=st.lists(st.integers(400, 599), max_size=3).map(tuple),
    batching=st.none()
    | st.builds(
        Batching,
        window_s=st.integers(0, 9),
        requests=st.integers(1, 9),
        timeout_s=st.integers(1, 9),
        poll_s=st.integers(1, 9),
        stop_s=st.integers(0, 9),
    ),
)

progresses = st.builds(
    Progress,
    stage=st.text(max_size=12),
    calls=st.integers(0, 10**6),
    cost_nano_usd=st.integers(0, 10**12),
    in_flight=st.integers(0, 256),
    waited_s=st.integers(0, 10**6),
)
