"""How numbers of things are spelled for people."""


def counted(number: object, what: str) -> str:
    """Spell a number of things: ``1 page``, ``2 pages``."""
    return f"{number} {what}" if str(number) == "1" else f"{number} {what}s"
