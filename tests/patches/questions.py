"""Which question a prompt asks, for trees whose calls do not say it."""

# In this order: a later phrase may stand in the prompt of an earlier question too.
PHRASES = {
    "toc_detector_single_page": "detect if there is a table of content provided",
    "detect_page_index": "detect if there are page numbers/indices",
    "check_if_toc_transformation_is_complete": "Raw Table of contents",
    "check_if_toc_extraction_is_complete": "given a partial document  and a",
    "toc_transformer": "transform the whole table of content",
    "toc_index_extractor": "add the physical_index to the table of contents",
    "add_page_number_to_toc": "title that is described in the structure is started",
    "generate_toc_continue": "continue the tree structure from the previous part",
    "generate_toc_init": "generate the tree structure of the document",
    "check_title_appearance_in_start": "starts in the beginning of the given page_text",
    "check_title_appearance": "appears or starts in the given page_text",
    "single_toc_item_index_fixer": "find the physical index of the start page",
    "summary_subtree": "the text that opens the section",
    "summary_leaf": "You are given a text chunk",
    "generate_node_summary": "main points covered in the partial document",
    "generate_doc_description": "generating descriptions for a document",
    "expand": "splitting an over-long section",
    "extract_toc_content": "extract the full table of contents",
}

CONTINUED = "Please continue the table of contents JSON structure"


def question_of(messages: list[dict[str, str]]) -> str:
    """Tell which operation a request serves; a continued one by its first message."""
    for message in reversed(messages):
        for name, phrase in PHRASES.items():
            if message["role"] == "user" and phrase in message["content"]:
                return name
    raise AssertionError("no question of the upstream: " + messages[-1]["content"][:80])
