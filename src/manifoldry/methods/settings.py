"""Parameters of methods as people type them."""

import ast
from typing import Any


def parsed_value(text: str) -> Any:
    """The value of a parameter: a number, a list, None, true or false; otherwise the text itself.

    Examples
    --------
    >>> parsed_value(" 20 "), parsed_value("none"), parsed_value("cityblock")
    (20, None, 'cityblock')
    """
    text = text.strip()
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
