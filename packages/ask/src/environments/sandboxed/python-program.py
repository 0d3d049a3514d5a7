"""Runs cells (Python programs of the model) in this process, which is inside the sandbox. Its settings are JSON in
argv; it talks in lines of JSON over file descriptor 3 (sandboxed-repl.ts).

1. A cell may overwrite all that it can name. It finds a module of its own as __main__; what runs here after
   the first cell has its own names for the built-ins, and they are restored after each.
2. SIGINT ends the code's work and nothing else: it raises only below a frame of a cell, and never in the middle of a
   line on the channel, where it waits for the end of it.
3. The rest of an answer that was cut short is a line that nobody waits for: it is skipped.
4. A cell that has used up its memory leaves enough for this program to report it.
"""

import builtins
import linecache
import os
import sys
from _signal import SIGINT, signal
from _thread import allocate_lock, get_ident
from io import TextIOBase
from json.decoder import JSONDecoder
from json.encoder import encode_basestring_ascii as quote
from math import ceil
from resource import RLIMIT_DATA, getrlimit, setrlimit
from types import ModuleType

pristine = dict(vars(builtins))
globals().update(pristine)  # names of our own for the built-ins (rule 1)

CHANNEL = 3
READ_BYTES = 65_536
JOIN_AT = 65_536
FRAMES_MAX = 6
VARIABLES_MAX = 500
NAME_MAX = 100
OWN_BYTES = 32 * 1024 * 1024
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range, memoryview)

scan = JSONDecoder().scan_once
settings, _ = scan(sys.argv[1], 0)
output_max, kept_max, text_max = settings["outputMax"], settings["keptMax"], settings["textMax"]
main_thread = get_ident()


# ---- Interrupts ----


class State:
    """What the signal's handler must know. Main thread only."""

    held = 0
    is_pending = False
    was_interrupted = False


class Held:
    """Delays an interrupt until the block has ended."""

    def __enter__(self):
        if get_ident() == main_thread:
            State.held += 1

    def __exit__(self, *failure):
        if get_ident() == main_thread:
            State.held -= 1
            if State.held == 0 and State.is_pending:
                State.is_pending = False
                interrupt()


def is_cell(code):
    return code.co_filename.startswith("<cell ")


def interrupt(frame=None):
    frame = frame or sys._getframe()
    while frame is not None:
        if is_cell(frame.f_code):
            State.was_interrupted = True
            raise KeyboardInterrupt
        frame = frame.f_back


def on_interrupt(_signal, frame):
    if State.held > 0:
        State.is_pending = True
    else:
        interrupt(frame)


# ---- The channel ----

write_lock = allocate_lock()
unread = b""


def json_of(value):
    """JSON of texts, numbers and None, and of lists and dicts of them."""
    if type(value) is str:
        return quote(value)
    if type(value) is list:
        return "[" + ",".join([json_of(item) for item in value]) + "]"
    if type(value) is dict:
        return "{" + ",".join([quote(name) + ":" + json_of(item) for name, item in value.items()]) + "}"
    return "null" if value is None else str(value)


def send(**said):
    line = memoryview(json_of(said).encode("ascii") + b"\n")
    with Held(), write_lock:
        while len(line) > 0:
            line = line[os.write(CHANNEL, line) :]


def receive():
    """The next message, or None for the rest of one that was cut short. Ends this process at the end of the channel."""
    global unread
    pieces = []
    while True:
        piece = unread or os.read(CHANNEL, READ_BYTES)
        if piece == b"":
            os._exit(0)
        head, newline, unread = piece.partition(b"\n")
        pieces.append(head)
        if newline:
            break
    try:
        return scan(b"".join(pieces).decode("ascii"), 0)[0]
    except (ValueError, StopIteration):
        return None


# ---- What a cell prints ----


def gap(characters, what):
    return f"\n… {characters:,} characters {what} …\n"


def cut(text, where):
    if len(text) <= output_max:
        return text
    head, tail = ceil(output_max / 2), output_max // 2
    return text[:head] + gap(len(text) - head - tail, "left out" + where) + text[len(text) - tail :]


class Output(TextIOBase):
    """Keeps kept_max characters and the end. The head is told at once, for the case that this process dies."""

    encoding = "utf-8"

    def __init__(self, name):
        self.name = name
        self.start()

    def start(self):
        self.blocks, self.pieces, self.piece_characters = [], [], 0
        self.kept, self.total, self.told, self.tail = 0, 0, 0, ""

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not calls.is_open():
            return len(text)  # a thread that outlived its cell
        if self.told < output_max / 2:
            head = text[: ceil(output_max / 2) - self.told]
            self.told += len(head)
            send(type="printed", stream=self.name, text=head)
        self.total += len(text)
        room = max(0, kept_max - self.kept)
        self.keep(text if len(text) <= room else text[:room])
        if len(text) > room:
            self.tail += text[room:]
            if len(self.tail) > JOIN_AT + 4 * output_max:
                self.tail = self.tail[-2 * output_max :]
        return len(text)

    def keep(self, text):
        self.kept += len(text)
        self.pieces.append(text)
        self.piece_characters += len(text)
        if self.piece_characters > JOIN_AT or len(self.pieces) > JOIN_AT / 64:
            self.blocks.append("".join(self.pieces))
            self.pieces, self.piece_characters = [], 0

    def whole(self):
        lost = self.total - self.kept - len(self.tail)
        text = "".join(self.blocks + self.pieces)
        return text + ("" if lost == 0 else gap(lost, "were not kept")) + self.tail


stdout, stderr = Output("stdout"), Output("stderr")


# ---- Calls to models ----


class Calls:
    """One at a time, whichever thread makes it, and none between cells."""

    def __init__(self):
        self.number, self.ordinal, self.lock = 0, 0, allocate_lock()

    def start(self, number):
        self.number, self.ordinal = number, 0

    def is_open(self):
        return self.number != 0

    def finish(self):
        with self.lock:  # waits for a call that a thread of the cell has made
            self.number = 0

    def ask(self, kind, prompts, model):
        characters = sum(len(prompt) for prompt in prompts)
        if characters > text_max:
            raise ValueError(f"one call takes {text_max} characters of prompts at most, these have {characters}")
        with self.lock, Held():
            if not self.is_open():
                raise RuntimeError("the cell of this thread has ended")
            self.ordinal += 1
            send(type="subcall", number=self.number, ordinal=self.ordinal, kind=kind, prompts=prompts, model=model)
            while True:
                reply = receive()
                if not reply or reply["type"] != "texts":
                    continue
                if reply["number"] == self.number and reply["ordinal"] == self.ordinal:
                    break
        if reply["texts"] is None:  # the cell is stopped
            State.was_interrupted = True
            raise KeyboardInterrupt
        return reply["texts"]


calls = Calls()


def text_of(value):
    return value if type(value) is str else str(value)


def model_of(value):
    return None if value is None else text_of(value)


def many(kind, prompts, model):
    if isinstance(prompts, (str, bytes)) or not hasattr(prompts, "__iter__"):
        raise TypeError("a list of prompts is needed")
    prompts = [text_of(prompt) for prompt in prompts]
    return calls.ask(kind, prompts, model_of(model)) if prompts else []


def llm_query(prompt, model=None):
    """The answer of a model to the prompt."""
    return calls.ask("llm", [text_of(prompt)], model_of(model))[0]


def llm_query_batched(prompts, model=None):
    """The answers of a model to the prompts, in their order."""
    return many("llm", prompts, model)


def rlm_query(prompt, model=None):
    """The answer of a run of its own, which can call models too."""
    return calls.ask("rlm", [text_of(prompt)], model_of(model))[0]


def rlm_query_batched(prompts, model=None):
    """The answers of runs of their own, in the order of the prompts."""
    return many("rlm", prompts, model)


# ---- The names that a cell finds ----


class Answer(dict):
    """The answer record. Its content is taken at the moment when it becomes ready."""

    def __init__(self):
        super().__init__(content="", ready=False)
        self.taken = None

    def changed(self, was_ready):
        if not was_ready and self.get("ready"):
            self.taken = text_of(self.get("content", ""))

    def __setitem__(self, key, value):
        was_ready = bool(self.get("ready"))
        super().__setitem__(key, value)
        self.changed(was_ready)

    def update(self, *of, **named):
        was_ready = bool(self.get("ready"))
        super().update(*of, **named)
        self.changed(was_ready)

    def __ior__(self, other):
        self.update(other)
        return self

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]


def rebound():
    """The dict that the cell has bound `answer` to, if it is not our record; otherwise None."""
    bound = namespace.get("answer")
    return bound if isinstance(bound, dict) and bound is not answer else None


def start_answer():
    draft = rebound()
    content = (draft if draft is not None else answer).get("content", "")
    answer.clear()
    dict.update(answer, content=content, ready=False)
    answer.taken = None


def take_answer():
    """The answer of this cell, or None. May run code of the cell."""
    bound = rebound()
    text = answer.taken
    if text is None and bound is not None and bound.get("ready"):
        text = text_of(bound.get("content", ""))
    if text is not None and len(text) > text_max:
        stderr.write("Note: the answer is not taken: it is too long\n")
        return None
    return text


def variables():
    """Name, type and size of the variables."""
    found = []
    for name, value in list(namespace.items()):
        if type(name) is not str or name.startswith("_") or name in reserved or len(name) > NAME_MAX:
            continue
        if value is by_name:
            continue
        kind = type(value)
        base = next((one for one in SIZED if issubclass(kind, one)), None)
        found.append((name, type.__getattribute__(kind, "__name__")[:NAME_MAX], base and base.__len__(value)))
        if len(found) == VARIABLES_MAX:
            break
    return found


def show_vars():
    """What is bound, as lines of text."""
    lines = [f"{name}: {kind}" + ("" if size is None else f" ({size})") for name, kind, size in variables()]
    return "\n".join(lines) or "no variables yet"


def read_context(index, path, notes):
    with open(path, "rb") as file:
        content = file.read()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        notes.append(f"Note: input {index + 1} is not UTF-8: the bytes that are not were replaced.\n")
        return content.decode("utf-8", "replace")


notes = []
texts = []
inputs = receive() or {"contexts": [], "names": []}
for index, path in enumerate(inputs["contexts"]):
    try:
        texts.append(read_context(index, path, notes))
    except (OSError, MemoryError) as failure:
        send(type="refused", why=f"input {index + 1} can not be read: {type(failure).__name__}: {failure}")
answer = Answer()
reserved = {
    "context": texts[0] if len(texts) == 1 else texts,
    "llm_query": llm_query,
    "llm_query_batched": llm_query_batched,
    "rlm_query": rlm_query,
    "rlm_query_batched": rlm_query_batched,
    "show_vars": show_vars,
    "SHOW_VARS": show_vars,
    "answer": answer,
    "last_output": "",
    "print": print,
}
by_name = dict(zip(inputs["names"], texts))
module = ModuleType("__main__")
namespace = vars(module)
namespace["names"] = by_name  # a cell may bind the name to something else
sys.modules["__main__"] = module


# ---- A cell ----


def describe(failure):
    """Type, message, and the lines of cells that led there."""
    from traceback import StackSummary, format_exception_only, walk_tb

    frames = [(frame, line) for frame, line in walk_tb(failure.__traceback__) if is_cell(frame.f_code)]
    shown = frames if len(frames) <= FRAMES_MAX else frames[: FRAMES_MAX // 2] + frames[-FRAMES_MAX // 2 :]
    text = "".join(StackSummary.extract(iter(shown)).format())
    head = "Traceback (most recent call last):\n" if text else ""
    return head + text + "".join(format_exception_only(type(failure), failure))


class Limited:
    """Limits the memory of a cell, so that some is left for this program (rule 4)."""

    def __enter__(self):
        self.before, hard = getrlimit(RLIMIT_DATA)
        if hard > OWN_BYTES:
            setrlimit(RLIMIT_DATA, (hard - OWN_BYTES, hard))

    def __exit__(self, *failure):
        setrlimit(RLIMIT_DATA, (self.before, getrlimit(RLIMIT_DATA)[1]))


def execute(code, name):
    """Runs the code and returns its status. Failures are written to stderr."""
    try:
        program = compile(code, name, "exec", dont_inherit=True)
        with Limited():
            exec(program, namespace)
        return "ok"
    except SystemExit as failure:
        stderr.write(f"SystemExit: {failure.code}: that ends only the cell here, its variables are kept\n")
    except KeyboardInterrupt as failure:
        if State.was_interrupted:
            stderr.write("Stopped: the cell was interrupted; what it had bound is kept.\n")
            return "stopped"
        stderr.write(describe(failure))
    except BaseException as failure:
        stderr.write(describe(failure))
    return "raised"


def run(number, code):
    name = f"<cell {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    start_answer()
    namespace.update(reserved, __name__="__main__")
    sys.stdout, sys.stderr = stdout, stderr
    stdout.start()
    stderr.start()
    State.was_interrupted = State.is_pending = False
    calls.start(number)
    while notes:
        stderr.write(notes.pop(0))
    status = execute(code, name)
    vars(builtins).update(pristine)
    signal(SIGINT, on_interrupt)
    try:
        given = take_answer()
    except BaseException as failure:
        given = None
        stderr.write("Note: the answer can not be read: " + describe(failure))
    calls.finish()
    reserved["last_output"] = stdout.whole()
    send(
        type="finished",
        number=number,
        status=status,
        stdout=cut(reserved["last_output"], "; the next cell has all of it in last_output"),
        stderr=cut(stderr.whole(), ""),
        variables=[{"name": name, "type": kind, "size": size} for name, kind, size in variables()],
        answer=given,
    )


def read(name):
    text = None
    if name in namespace and not name.startswith("__"):
        try:
            text = text_of(namespace[name])[:text_max]
        except BaseException:
            text = None  # its own code fails to say what it is
    send(type="value", text=text)


def serve():
    signal(SIGINT, on_interrupt)
    send(type="ready")
    while True:
        order = receive()
        if order and order["type"] == "run":
            run(order["number"], order["code"])
        elif order and order["type"] == "read":
            read(order["name"])


try:
    serve()
except BaseException as failure:
    os.write(2, f"{type(failure).__name__}: {failure}\n".encode("utf-8", "replace"))
    os._exit(70)
