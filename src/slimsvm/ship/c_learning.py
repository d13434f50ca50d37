"""The text of a C model that learns on: `model.c` with `learning.c` in it, and tables that change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..kernels.spec import EXP, TANH
from ..learning import Learning
from .artefact import Array, Artefact
from .c_source import CSource, c_type
from .coded import Coded
from .learning import check_learning, rule_of
from .literals import as_float32, float_literal, table
from .template import filled, source


@dataclass(frozen=True)
class LearningSource(CSource):
    """The text of one model that learns on."""

    learning: Learning

    @classmethod
    def of(cls, artefact: Artefact, prefix: str) -> LearningSource:
        """Return the source of a model of a stream; raise ValueError for one that cannot learn on."""
        known = check_learning(artefact)
        a = Coded.plain(replace(artefact, points=artefact.table, coef=known.coef)).a
        return cls(a, prefix, "float32", None, known)

    def text(self) -> str:
        """Return the C source."""
        return super().text().replace('#include "learning.c"', filled(source("learning.c"), self.branches, self.words))

    @property
    def rule(self) -> str:
        """The rule of an update."""
        return rule_of(self.a)

    @property
    def branches(self) -> dict[str, int | str]:
        """The values of the names in the conditions of the sources."""
        value, rule = self.a.spec.value, self.rule
        return super().branches | {
            "CODED": 1,
            "LEARNS": 1,
            "PREPARED": int(self.prepares),
            "EXPONENTIAL": value.library is not None,
            "TANGENT": value is TANH,
            "RULE": rule,
            "MAINTENANCE": self.learning.maintenance.upper() or 0,
            "ROOT": rule in ("FORGETRON", "RANDOM"),
            "OUTPUTS": self.a.outputs,
        }

    @property
    def words(self) -> dict[str, str]:
        """The types, names and expressions of this model."""
        return super().words | {
            "POINT": "points[entry]",
            "OWN_KERNEL": "" if self.a.spec.value is EXP else " * kernel(points + j * FEATURES, (uint32_t)j)",
            "STEP": "1" if self.learning.weights is None else "weights[label]",
            "MOVE_SQUARE": "1.0f" if self.a.outputs == 1 else "2.0f",
            "UPDATE_LABEL": {"REGRESSION": ", float label", "NOVELTY": ""}.get(self.rule, ", int label"),
            "model_update": f"{self.prefix}_update",
        }

    @property
    def value(self) -> str:
        """The kernel value of a sum over the features, as an expression."""
        return self.a.spec.value.expression.format(exp="exponential", tanh="tangent")

    @property
    def library(self) -> list[str]:
        """No function of the C library."""
        return []

    def headers(self) -> list[str]:
        """Return the headers of the C library that the source includes."""
        return ["stdint"]

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The constant tables, and the first contents of those that change."""
        found = {name: values for name, values in self.scaling_parts.items() if np.ptp(values)}
        if self.learning.weights is not None:
            found |= {"weights": as_float32(self.learning.weights, "class weights")}
        return found | {name: values for name, (values, _) in self.memory.items()}

    @cached_property
    def memory(self) -> dict[str, tuple[Array, int]]:
        """The tables that change, and the length of each."""
        a, seats = self.a, self.learning.budget + 1
        found = {
            "points": (a.table.astype(np.float32), seats * a.features),
            "coef": (a.coef.astype(np.float32), seats * a.outputs),
        }
        return found | ({"born": (self.learning.born.astype(np.uint32), seats)} if self.learning.maintenance else {})

    @property
    def numbers(self) -> dict[str, tuple[str, str]]:
        """The numbers that change: their types and first values."""
        known, a = self.learning, self.a
        full = a.size == known.budget
        found = {"size": ("int", str(a.size))}
        if self.rule in ("DESCENT", "REGRESSION", "NOVELTY"):
            scale = np.float32(known.lam) * (np.float32(max(known.seen, 1)) + np.float32(known.late))
            found |= {
                "seen": ("uint32_t", f"{known.seen}u"),
                "unit": ("float", float_literal(float(np.float32(1) / scale))),
            }
        if self.rule in ("REGRESSION", "NOVELTY"):
            found |= {"offset": ("float", float_literal(a.bias[0]))}
        if known.maintenance:
            found |= {"moves": ("uint32_t", f"{known.moves}u")}
        if self.rule == "FORGETRON":
            found |= {"oldest": ("int", str(known.moves % known.budget if full else 0))}
            found |= {"slack": ("float", float_literal(known.slack))}
        if self.rule == "RANDOM":
            state = known.rng["state"]["state"]
            found |= {"state_high": ("uint64_t", f"{state >> 64}u"), "state_low": ("uint64_t", f"{state % 2**64}u")}
            kept, rest = known.rng["has_uint32"], known.rng["uinteger"]
            found |= {"rest": ("uint32_t", f"{rest}u"), "kept": ("int", str(kept))}
        return found

    def constants(self) -> str:
        """Return includes and constants."""
        known = self.learning
        lines = [line for line in super().constants().splitlines() if not line.startswith("#define POINTS")]
        lines += [f"#define BUDGET {known.budget}"]
        lines += ["#define CLASSES 2"] * (self.a.classes.size == 2)
        floats = {"LAM": known.lam} if "unit" in self.numbers else {}
        floats |= {"LATE": known.late} if "offset" in self.numbers else {}
        floats |= {"EPSILON": known.epsilon} if self.rule == "REGRESSION" else {}
        floats |= {"NU": known.nu or 0.0} if self.rule == "NOVELTY" else {}
        lines += [f"#define {name} {float_literal(value)}" for name, value in floats.items()]
        if self.rule == "RANDOM":
            step = known.rng["state"]["inc"]
            lines += [f"#define INC_HIGH {step >> 64}u", f"#define INC_LOW {step % 2**64}u"]
        return "\n".join(lines)

    def tables(self) -> str:
        """Return all numbers of the model: those that stay, and those that change."""
        texts = []
        for name, values in self.arrays.items():
            numbers = table(values, "f") if values.size else "    0"
            kind = "static" if name in self.memory else "static const FLASH"
            size = self.memory[name][1] if name in self.memory else values.size
            texts.append(f"{kind} {c_type(values)} {name}[{size}] = {{\n{numbers}\n}};")
        changing = [f"static {kind} {name} = {value};" for name, (kind, value) in self.numbers.items()]
        return "\n\n".join([*texts, "\n".join(changing)])

    @property
    def ram(self) -> int:
        """The bytes of all that changes."""
        sizes = {"int": 4, "float": 4, "uint32_t": 4, "uint64_t": 8}
        return 4 * sum(size for _, size in self.memory.values()) + sum(sizes[kind] for kind, _ in self.numbers.values())

    def prototypes(self) -> list[str]:
        """Return the declarations of the header."""
        return [*super().prototypes(), f"int {self.prefix}_update(const float *x{self.words['UPDATE_LABEL']});"]

    def more_functions(self) -> list[str]:
        """Return what an update does, in words."""
        label = {"REGRESSION": "its value", "NOVELTY": ""}.get(self.rule, "the number of its class")
        return [
            "",
            self.prototypes()[-1],
            f"learns from a row{' and ' * bool(label)}{label}. It returns 1 if the row became a point, 0 if not, and -1",
            f"for numbers that are not finite{' and labels that there are not' * bool(label)}, of which it learns nothing.",
            f"There are {self.learning.budget} points at most, in {self.ram:,} bytes of memory that are counted below too.",
            "Compile with -ffp-contract=off for the bits of slimsvm.runtime(model, update=True).",
        ]

    def header_includes(self) -> str:
        """Return the lines in front of the header's constants."""
        upper = self.prefix.upper()
        return f"""/* Bytes of memory that the model takes, which learning never exceeds: {self.learning.budget} points. */
#define {upper}_RAM {self.ram}
"""
