"""Pictures of a cell: written under names of our own, and only their paths are told.

Part of the interpreter: the code beside it can call all this, and write such files itself.
"""

import base64
import io
import os
import sys

from limits import MAX_FIGURE, MAX_FIGURES, MIB


class Figures:
    """The pictures of one cell, at most MAX_FIGURES of MAX_FIGURE bytes each."""

    def __init__(self, workspace, cell):
        self.place, self.cell = os.path.join(workspace, "figures"), cell
        self.saved, self.left_out, self.failure = [], 0, None

    def keep(self, picture):
        """Writes one PNG, or counts it as left out. Never follows a link, never replaces a file."""
        if len(self.saved) >= MAX_FIGURES or len(picture) > MAX_FIGURE:
            self.left_out += 1
            return
        name = "cell-%d-%d-%s.png" % (self.cell, len(self.saved) + 1, os.urandom(4).hex())
        try:
            try:
                os.mkdir(self.place)
            except FileExistsError:
                pass
            directory = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                with os.fdopen(os.open(name, flags, 0o644, dir_fd=directory), "wb") as file:
                    file.write(picture)
            finally:
                os.close(directory)
            self.saved.append("figures/" + name)
        except OSError as error:
            self.left_out += 1
            self.failure = error.strerror

    def keep_shown(self, bundle):
        """Keeps what IPython's display was given. Tells whether it was a picture."""
        picture = bundle.get("image/png")
        if isinstance(picture, str):
            picture = base64.b64decode(picture)
        if not isinstance(picture, bytes):
            return False
        self.keep(picture)
        return True

    def keep_open(self):
        """Keeps matplotlib's open figures and closes them."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        numbers = list(pyplot.get_fignums()) if pyplot is not None else []
        if not numbers:
            return
        try:
            for number in numbers:
                if len(self.saved) >= MAX_FIGURES:
                    self.left_out += 1
                    continue
                picture = io.BytesIO()
                pyplot.figure(number).savefig(picture, format="png")
                self.keep(picture.getvalue())
        finally:
            pyplot.close("all")

    def note(self):
        """What the cell's output says of pictures that are not there."""
        if not self.left_out:
            return None
        reason = self.failure or "at most %d a cell, %d MiB each" % (MAX_FIGURES, MAX_FIGURE // MIB)
        return "[%d figures left out: %s]" % (self.left_out, reason)
