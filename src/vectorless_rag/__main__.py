"""``python -m vectorless_rag``: the program where its script is not on the path."""

from vectorless_rag.cli import entrypoint

if __name__ == "__main__":
    entrypoint()
