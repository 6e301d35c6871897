"""What hypothesis draws for the pinned upstream and its patches."""

from hypothesis import strategies as st

names = st.text("abcXYZ09_-é漢", min_size=1, max_size=6)
bodies = st.binary(max_size=12)
modes = st.sampled_from([0o644, 0o755])

trees = st.dictionaries(
    st.lists(names, min_size=1, max_size=2).map("/".join),
    st.tuples(bodies, modes),
    min_size=1,
    max_size=5,
).filter(lambda tree: not any(f"{a}/" in f"{b}" for a in tree for b in tree if a != b))
"""Files by path: bytes and mode; no file is a folder too."""

lines = st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"\n", b"    pass\n"])
texts = st.lists(lines, max_size=12).map(b"".join)
"""Files of few and repeated lines, where a hunk fits in many places."""

_statements = st.sampled_from(
    [
        "def f():\n    pass\n",
        "f = 1\n",
        "import f\n",
        "from m import f\n",
        "from m import g as f\n",
        "class f:\n    pass\n",
        "if g:\n    f = 2\n",
        "try:\n    import f\nexcept ImportError:\n    f = None\n",
        "f, g = 1, 2\n",
        "g = 1\n",
        "def g():\n    f = 3\n",
        "# f = 4\n",
    ]
)
modules = st.lists(_statements, max_size=6)
"""Modules as lists of statements that bind f, g or neither."""
