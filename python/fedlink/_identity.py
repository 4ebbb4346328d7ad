"""The identity of a custom part: the texts that determine its behavior.

They are the source of the modules that it comes from and of those of the user's that these import, and a list
of values: arguments and their defaults, closures, and the constants of modules and classes that its code
reads. A folder of results keeps them, and runs of another text are not mixed with those that it holds.
"""

from __future__ import annotations

import ast
import dis
import enum
import functools
import hashlib
import importlib.machinery
import importlib.util
import inspect
import os
import site
import sys
import sysconfig
import textwrap
import tokenize
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: The prefix of the names of modules that ``--parts`` loads.
PREFIX = "fedlink_parts_"

#: The file of the values.
ARGUMENTS = "arguments.txt"

#: The file of the definitions that come from a script or a notebook.
MAIN = "main.py"

#: Where an object notes that a run has used it.
USED = "_fedlink_used"

#: A method of classes of this package with the attributes that determine what an object does: the others
#: change while it serves.
DETERMINED_BY = "_determined_by"

#: Values that a text states completely.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis))

#: A longer text of a value is none that states it completely: libraries cut it off.
_LONGEST = 2000


class Undescribed(ValueError):
    """A value of which no text is known that is the same in every process."""


def identify(part: Any, cls: type, argument: str, strict: bool) -> dict[str, str]:
    """The texts that determine ``part``, which makes objects of ``cls``, by the names of their files.

    If ``strict``, it is an error if a value cannot be described, or if a module was changed after it was
    loaded; otherwise the text says so.
    """
    walk = _Walk(argument, strict)
    for parameter in parameters(part) or []:
        if parameter.default is not parameter.empty:
            where = f"the argument {parameter.name}"
            walk.line(f"argument {parameter.name}", walk.text(parameter.default, where))
    walk.line("part", walk.text(part, "the part"))
    walk.definition(cls)
    texts = dict(sorted(walk.modules.items()))
    if walk.main:
        texts[MAIN] = "\n\n".join(text for _, text in sorted(walk.main.items()))
    texts[ARGUMENTS] = "".join(f"{line}\n" for line in sorted(set(walk.lines)))
    return texts


def digest(texts: Mapping[str, str]) -> str:
    """The digest of the texts of a part."""
    whole = hashlib.sha256()
    for name, text in sorted(texts.items()):
        whole.update(f"{name}\n{len(text.encode())}\n{text}".encode())
    return whole.hexdigest()[:16]


def parameters(part: Any) -> list[inspect.Parameter] | None:
    """The arguments of the maker of a part; None if it takes any keyword."""
    if not isinstance(part, type) and not callable(part):
        return []
    try:
        found = list(inspect.signature(part).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found):
        return None
    return [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def module_name(name: str) -> str:
    """The name of a module as a folder records it: that of a file of ``--parts`` is the file's."""
    return name[len(PREFIX) :] if name.startswith(PREFIX) else name


@functools.lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    """The folders of the standard library, of installed packages and of this one."""
    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib") if key in paths]
    folders += [*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(__file__)]
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


def _is_users(path: str | None) -> bool:
    """Whether a source file lies in a folder of the user's."""
    if path is None or not path.endswith(".py"):
        return False
    real = os.path.realpath(path)
    installed = {"site-packages", "dist-packages"}.intersection(real.split(os.sep))
    return os.path.isfile(real) and not installed and not real.startswith(_libraries())


class _Walk:
    """Collects the texts behind a part."""

    def __init__(self, argument: str, strict: bool) -> None:
        self.argument, self.strict = argument, strict
        self.modules: dict[str, str] = {}
        self.main: dict[str, str] = {}
        self.lines: list[str] = []
        self._seen: dict[int, Any] = {}
        self._codes: dict[str, dict[str, list[types.CodeType]]] = {}

    def line(self, name: str, value: str) -> None:
        """Notes a value."""
        self.lines.append(f"{name} = {value}")

    def _fail(self, problem: str, text: str) -> str:
        if self.strict:
            raise Undescribed(f"{self.argument}: {problem}")
        return text

    # Values

    def text(self, value: Any, where: str) -> str:
        """A text that states a value completely; ``where`` names it in messages."""
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            return f"bytes {_sha256(value)}" if isinstance(value, bytes) and len(value) > 99 else repr(value)
        if isinstance(value, enum.Enum):
            return f"{_name_of(type(value))}.{value.name}"
        if isinstance(value, type):
            self.definition(value)
            return f"class {_name_of(value)}"
        if isinstance(value, functools.partial):
            return f"partial({self._arguments([value.func, *value.args], value.keywords, where)})"
        if isinstance(value, types.MethodType):
            return f"{self.text(value.__self__, where)}.{value.__name__}"
        if isinstance(value, types.FunctionType):
            return self._function_text(value)
        if isinstance(value, types.ModuleType):
            self._module(value.__name__, getattr(value, "__file__", None))
            return f"module {module_name(value.__name__)}"
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType, staticmethod, classmethod)):
            return f"function {_name_of(value)}"
        if id(value) in self._seen:
            return "(as before)" if type(value) not in _PLAIN else repr(value)
        self._seen[id(value)] = value
        found = self._container(value, where) or self._array(value, where) or self._object(value, where)
        del self._seen[id(value)]
        return found

    def _arguments(self, values: list[Any], keywords: Mapping[str, Any], where: str) -> str:
        listed = [self.text(value, where) for value in values]
        listed += [f"{name}={self.text(value, f'{where}, {name}')}" for name, value in keywords.items()]
        return ", ".join(listed)

    def _container(self, value: Any, where: str) -> str | None:
        if type(value) in (list, tuple):
            inside = self._arguments(list(value), {}, where)
            return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
        if type(value) in (set, frozenset):
            return f"{{{', '.join(sorted(self.text(item, where) for item in value))}}}"
        if isinstance(value, (dict, types.MappingProxyType)):
            items = [f"{self.text(key, where)}: {self.text(item, where)}" for key, item in value.items()]
            return f"{{{', '.join(items)}}}"
        return None

    def _array(self, value: Any, where: str) -> str | None:
        import numpy

        if isinstance(value, numpy.random.Generator):
            return f"generator {self.text(value.bit_generator.state, where)}"
        if isinstance(value, (numpy.generic, numpy.dtype)):
            return repr(value)
        if not isinstance(value, numpy.ndarray):
            if not hasattr(value, "__array__"):
                return None
            try:
                value = numpy.asarray(value)
            except Exception:
                return None
        if value.dtype.hasobject:
            return f"array {value.shape} {self.text(value.tolist(), where)}"
        content = numpy.ascontiguousarray(value)
        return f"array {value.dtype.str} {value.shape} {_sha256(content.tobytes())}"

    def _object(self, value: Any, where: str) -> str:
        cls = type(value)
        if hasattr(cls, DETERMINED_BY):
            self.definition(cls)
            return f"{_name_of(cls)}({self._arguments([], getattr(value, DETERMINED_BY)(), where)})"
        if _is_users_class(cls):
            self.definition(cls)
            names = [name for base in cls.__mro__ for name in _slots(base) if hasattr(value, name)]
            held = {name: getattr(value, name) for name in names}
            held.update(getattr(value, "__dict__", {}))
            held.pop(USED, None)
            return f"{_name_of(cls)}({self._arguments([], held, where)})"
        if callable(value) and _by_name(value) is value:
            return f"function {_name_of(value)}"
        default: Any = object.__repr__
        shown = repr(value) if cls.__repr__ is not default else ""
        if shown and " at 0x" not in shown and "..." not in shown and len(shown) <= _LONGEST:
            return shown
        name = _name_of(cls)
        made_of = _made_of(value)
        if made_of is not None:
            return f"{name}({self._arguments(made_of, {}, where)})"
        problem = (
            f"{where} is an object of {name}, and no text states all that it holds in every process alike"
        )
        remedy = "pass numbers, text, arrays or an object of a class of yours in its place"
        return self._fail(f"{problem}; {remedy}", f"an object of {name} that is not described")

    # Code

    def definition(self, cls: type) -> None:
        """Notes the source of a class and of its bases, and all that their code reads."""
        for base in cls.__mro__:
            if id(base) in self._seen or not _is_users_class(base):
                continue
            self._seen[id(base)] = base
            has_source = self._source(base)
            for name, value in vars(base).items():
                self._member(base, name, value, has_source)

    def _member(self, cls: type, name: str, value: Any, has_source: bool) -> None:
        functions = [value]
        if isinstance(value, (staticmethod, classmethod)):
            functions = [value.__func__]
        elif isinstance(value, property):
            functions = [value.fget, value.fset]
        elif isinstance(value, functools.cached_property):
            functions = [value.func]
        code = [f for f in functions if isinstance(f, types.FunctionType)]
        for function in code:
            self.function(function)
            if not has_source:
                self._source(function)
        is_ours = name.startswith("__") or name == USED
        if not code and not is_ours and (_is_constant(value) or not has_source):
            where = f"the attribute {name} of {_name_of(cls)}"
            if not isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                self.line(f"{_name_of(cls)}.{name}", self.text(value, where))

    def _function_text(self, function: types.FunctionType) -> str:
        self.function(function)
        return f"function {_name_of(function)}{_own_text(function)}"

    def function(self, function: types.FunctionType) -> None:
        """Notes the source of a function, its closure and defaults, and the values that it reads."""
        if id(function) in self._seen:
            return
        self._seen[id(function)] = function
        name = _name_of(function)
        if not _is_users_module(function.__module__):
            return
        has_source = self._source(function)
        self._check_loaded(function)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if variable == "__class__":
                continue
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.line(f"{name}, {variable}", self.text(value, f"{variable}, which {name} reads,"))
        for variable, value in _defaults(function):
            if _is_constant(value) or not has_source:
                self.line(f"{name}, {variable}", self.text(value, f"the argument {variable} of {name}"))
        whole = self._is_file(function.__module__)
        for code in _nested(function.__code__):
            for variable in _globals_of(code):
                if variable in function.__globals__:
                    value = function.__globals__[variable]
                    self._global(function.__module__, variable, value, code.co_names, whole)

    def _global(self, module: str, name: str, value: Any, attributes: tuple[str, ...], whole: bool) -> None:
        if isinstance(value, types.ModuleType):
            path = getattr(value, "__file__", None)
            if not _is_users(path):
                return
            self._module(value.__name__, path)
            for attribute in attributes:
                inner = getattr(value, attribute, None)
                if not isinstance(inner, types.ModuleType):
                    self._global(value.__name__, attribute, inner, (), True)
        elif isinstance(value, type):
            self.definition(value)
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif _is_constant(value) or not whole:
            where = f"{name} of {module_name(module)}"
            if value is not None or not whole:
                self.line(f"{module_name(module)}.{name}", self.text(value, where))

    # Sources

    def _is_file(self, module: str) -> bool:
        """Whether the whole source of a module is noted: it is neither a script nor a notebook."""
        return module != "__main__" and _is_users(_file_of(module))

    def _source(self, thing: Any) -> bool:
        """Notes the module of a class or function, or of a script its definition alone: other lines of the
        script do not affect it. Returns whether the source is known."""
        module = thing.__module__
        if self._is_file(module):
            self._module(module, _file_of(module))
            return not isinstance(thing, type) or _in_source(thing)
        try:
            source = textwrap.dedent(inspect.getsource(thing))
        except (OSError, TypeError):
            if isinstance(thing, types.FunctionType):
                self.line(f"{_name_of(thing)}, code", _code_text(thing.__code__))
            return False
        self.main[_name_of(thing)] = source
        return True

    def _module(self, name: str, path: str | None) -> None:
        """Notes the source of a module, and of the user's modules that it imports."""
        if name == "__main__" or path is None or not _is_users(path):
            return
        file = f"{module_name(name)}.py"
        if file in self.modules:
            return
        try:
            with tokenize.open(path) as lines:
                source = lines.read()
            tree = ast.parse(source, path)
        except (OSError, SyntaxError, ValueError) as error:
            self._fail(f"{path} cannot be read as the source of {name}: {error}", "")
            return
        self.modules[file] = source
        module = sys.modules.get(name)
        package = getattr(module, "__package__", None)
        if package is None:
            package = name if os.path.basename(path) == "__init__.py" else name.rpartition(".")[0]
        for imported in _imports(tree, package):
            self._module(imported, _file_of(imported) or _found(imported))

    def _check_loaded(self, function: types.FunctionType) -> None:
        """An error if the source of a function was changed after it was loaded."""
        module = sys.modules.get(function.__module__)
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        path = _file_of(function.__module__)
        # Others, such as that of pytest, change the code that they load.
        if type(loader) is not importlib.machinery.SourceFileLoader or path is None:
            return
        if function.__code__.co_filename != path:
            return
        if path not in self._codes:
            with tokenize.open(path) as lines:
                source = lines.read()
            codes: dict[str, list[types.CodeType]] = {}
            try:
                compiled = compile(source, path, "exec", dont_inherit=True)
            except SyntaxError:
                compiled = None
            for code in _nested(compiled) if compiled is not None else ():
                codes.setdefault(code.co_name, []).append(code)
            self._codes[path] = codes
        own = function.__code__
        if not any(_same_code(own, code) for code in self._codes[path].get(own.co_name, [])):
            problem = f"{path} was changed after it was loaded, and the old text would run"
            self._fail(f"{problem}; start Python anew, or reload the module", "")


def _sha256(content: bytes) -> str:
    return f"sha256 {hashlib.sha256(content).hexdigest()[:16]}"


def _name_of(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", type(thing).__name__)
    module = getattr(thing, "__module__", None)
    return f"{module_name(module)}.{name}" if module else str(name)


def _by_name(thing: Any) -> Any:
    """The object that a library has under the name of ``thing``."""
    found = sys.modules.get(getattr(thing, "__module__", None) or "")
    for name in str(getattr(thing, "__qualname__", "")).split("."):
        found = getattr(found, name, None)
    return found


def _file_of(module: str | None) -> str | None:
    found = sys.modules.get(module or "")
    path = getattr(found, "__file__", None)
    return path if isinstance(path, str) else None


def _is_users_module(module: str | None) -> bool:
    """Whether a module is a file of the user's, a script, a notebook, or made by hand."""
    if module is None:
        return True
    found = sys.modules.get(module)
    if module == "__main__" or found is None:
        return True
    path = getattr(found, "__file__", None)
    return path is not None and _is_users(path)


def _is_users_class(cls: type) -> bool:
    return not cls.__module__.startswith("fedlink.") and _is_users_module(cls.__module__)


def _in_source(cls: type) -> bool:
    """Whether the source of a class is in that of its module; ``type(…)`` makes one without."""
    try:
        inspect.getsource(cls)
    except (OSError, TypeError):
        return False
    return True


def _made_of(value: Any) -> list[Any] | None:
    """The function and the values from which an object of a library is made again when it is unpickled; None
    if it cannot be pickled, such as a lock."""
    try:
        found = value.__reduce_ex__(2)
    except Exception:
        return None
    if not isinstance(found, tuple):
        return None
    return [list(item) if isinstance(item, Iterator) else item for item in found]


def _is_constant(value: Any) -> bool:
    """Whether a value cannot change by itself."""
    if type(value) is tuple:
        return all(_is_constant(item) for item in value)
    return type(value) in _PLAIN or isinstance(value, (enum.Enum, functools.partial))


def _slots(cls: type) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if not name.startswith("__")]


def _defaults(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    yield from zip(names[len(names) - len(values) :], values)
    yield from (function.__kwdefaults__ or {}).items()


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _globals_of(code: types.CodeType) -> list[str]:
    """The names of a module that a code object reads."""
    reads = ("LOAD_GLOBAL", "LOAD_NAME")
    return sorted({str(i.argval) for i in dis.get_instructions(code) if i.opname in reads})


def _code_text(code: types.CodeType) -> str:
    """A digest of code without a known source; another version of Python may give another one."""
    codes = [(part.co_code, _constants(part), part.co_names) for part in _nested(code)]
    return _sha256(repr(codes).encode())


def _constants(code: types.CodeType) -> list[str]:
    return [repr(constant) for constant in code.co_consts if not isinstance(constant, types.CodeType)]


def _same_code(a: types.CodeType, b: types.CodeType) -> bool:
    same = a.co_code == b.co_code and a.co_names == b.co_names and _constants(a) == _constants(b)
    inner = [[c for c in code.co_consts if isinstance(c, types.CodeType)] for code in (a, b)]
    return same and len(inner[0]) == len(inner[1]) and all(map(_same_code, *inner))


def _own_text(function: types.FunctionType) -> str:
    """The text of a function without a name of its own: a module may have many of them."""
    if "<" not in function.__name__:
        return ""
    code = function.__code__
    try:
        lines, first = inspect.findsource(function)
    except (OSError, TypeError):
        return f": {_code_text(code)}"
    positions: Callable[[], Any] | None = getattr(code, "co_positions", None)
    found = [p for p in positions() if None not in p and p[0] > 0 and p[3] > 0] if positions else []
    if not found:
        return f": {_code_text(code)}"
    start = min((line, column) for line, _, column, _ in found)
    end = max((line, column) for _, line, _, column in found)
    part = [line.encode() for line in lines[start[0] - 1 : end[0]]]
    part[-1] = part[-1][: end[1]]
    part[0] = part[0][start[1] :]
    return f": {' '.join(line.decode(errors='replace').strip() for line in part)}"


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """The modules that a source imports, at its top or inside functions; some may be no modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".") if node.level else []
            above = above[: len(above) - (node.level - 1)] if node.level > 1 else above
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from _with_parents(base)
            yield from (f"{base}.{alias.name}" for alias in node.names if base and alias.name != "*")


def _with_parents(name: str) -> Iterator[str]:
    words = name.split(".")
    yield from (".".join(words[: i + 1]) for i in range(len(words)) if words[0])


def _found(name: str) -> str | None:
    """The file of a module that is not loaded: it is imported inside a function."""
    top = name.split(".")[0]
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return None
    # Looking for a module inside a package loads the package.
    if "." in name and not _is_users(_file_of(top)):
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec is not None else None
