"""A home that hides its rows: only the protocol can be used, anything else raises AttributeError."""

from inspect import ismethod

from slimsvm.rows.host import HostRows
from slimsvm.rows.kernel_matrix import KernelMatrix
from slimsvm.rows.protocol import Rows, SpannedRows


def public(protocol):
    """The names that a protocol has."""
    own = {name for kind in protocol.__mro__[:-1] for name in {*vars(kind), *getattr(kind, "__annotations__", ())}}
    return frozenset(name for name in own if not name.startswith("_"))


class Hidden:
    """An object of which only the names of a protocol can be read; rows and handles that it returns are hidden too."""

    def __init__(self, inside, protocol):
        def read(name):
            if name not in public(protocol):
                raise AttributeError(f"{name!r} is not in the protocol {protocol.__name__}")
            value = getattr(inside, name)
            return (lambda *args, **kwargs: hidden(value(*args, **kwargs))) if ismethod(value) else value

        object.__setattr__(self, "_read", read)

    def __getattr__(self, name):
        return object.__getattribute__(self, "_read")(name)

    def __setattr__(self, name, value):
        raise AttributeError(f"{name!r} of rows is not for others to set")


def hidden(answer):
    """The answer of a home, hidden where it is rows or a handle on kernel values."""
    for protocol in (SpannedRows, Rows, KernelMatrix):
        if not isinstance(answer, Hidden) and public(protocol) <= set(dir(answer)):
            return Hidden(answer, protocol)
    return answer


def hidden_rows(kernel, X):
    """Rows on the host, hidden."""
    return hidden(HostRows(kernel, X))
