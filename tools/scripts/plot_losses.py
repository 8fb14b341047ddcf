#!/usr/bin/env python3
"""What each loss rewards, drawn from the engine itself: docs/losses_light.svg and docs/losses_dark.svg.

One query, one positive and 100 negatives whose similarities to the query lie evenly from 0 to 0.6. The
positive is moved through them, from the last rank to the first and beyond. For each place `probe` is asked for
the loss and its gradient. The items stand in orthogonal directions around the query, so the query's gradient
holds the derivative by every single similarity.

Needs numpy, h5py and matplotlib in the Python that runs it (a throw-away virtual environment will do).

  tools/scripts/plot_losses.py [--bin build/bin] [--out docs]
"""
import argparse
import io
import os
import re
import subprocess
import tempfile

import h5py
import matplotlib
import numpy

matplotlib.use("svg")
import matplotlib.pyplot as pyplot

NEGATIVES = numpy.linspace(0.0, 0.6, 100)
PLACES = numpy.concatenate([numpy.linspace(-0.06, 0.53, 16), numpy.linspace(0.55, 0.62, 13),
                            numpy.linspace(0.65, 0.98, 7)])
MIDDLE = 0.45  # the positive's similarity in the right column

# RaMBO's step lambda is made for the gradient of a whole batch, which one query alone exceeds by the number of
# its (query, positive) pairs: 384 for 128 items, 4 a class.
FAMILIES = [
    ("average precision", ["fastap", "smooth_ap", "sup_ap", "rambo_ap:lambda=0.0104"]),
    ("PNP", ["pnp_o", "pnp_iu", "pnp_ib", "pnp_ds", "pnp_dq"]),
    ("recall", ["rambo_recall:lambda=0.0104", "rambo_recall:weight=loglog,lambda=0.0104",
                "recall_at_k"]),
    ("ROC curve", ["auc_bh", "auc_ba", "wilcoxon_bh", "histogram"]),
    ("pairs and triplets", ["triplet_bh", "triplet_ba", "contrastive", "multi_similarity"]),
    ("proxies", ["nsl", "proxy_anchor"]),
    ("score matrices", ["rambo_map", "rambo_apc"]),
]
NOT_DRAWN = {"rambo_map_apc"}  # a weighted sum of two drawn losses


class Engine:
    def __init__(self, folder, probe):
        self.probe = probe
        self.inside = os.path.join(folder, "in.h5")
        self.outside = os.path.join(folder, "out.h5")
        names = subprocess.run([probe, "--help"], check=True, capture_output=True, text=True).stdout
        self.names = [line.split()[0] for line in names.split("Losses (")[1].splitlines()[1:] if line]
        self.reads = {}

    def kind(self, name):
        """The first dataset that the loss says it reads, and whether it takes proxies."""
        if name not in self.reads:
            text = subprocess.run([self.probe, "--loss", name, "--help"], check=True,
                                  capture_output=True, text=True).stdout
            self.reads[name] = ("/scores" in text, "/proxies" in text)
        return self.reads[name]

    def __call__(self, spec, place):
        """The loss and its derivatives by the similarity of the positive and of the negatives."""
        on_scores, on_proxies = self.kind(spec.split(":")[0])
        similarity = numpy.concatenate([[place], NEGATIVES])
        across = numpy.sqrt(1 - similarity**2)
        items = numpy.hstack([similarity[:, None], numpy.diag(across)]).astype(numpy.float32)
        labels = numpy.arange(len(items), dtype=numpy.int64)
        query = numpy.zeros((1, items.shape[1]), numpy.float32)
        query[0, 0] = 1
        with h5py.File(self.inside, "w", libver=("v108", "v110")) as file:
            if on_scores:
                file["scores"] = similarity[:, None].astype(numpy.float32)
                file["targets"] = (labels == 0).astype(numpy.uint8)[:, None]
            else:
                file["embeddings"], file["labels"] = query, labels[:1]
                if on_proxies:
                    file["proxies"] = items
                else:
                    file["memory_embeddings"], file["memory_labels"] = items, labels
        subprocess.run([self.probe, "--loss", spec, "--in", self.inside, "--out", self.outside,
                        "--threads", "1", "--device", "cpu"], check=True, stdout=subprocess.DEVNULL)
        with h5py.File(self.outside) as file:
            loss, gradient = float(file["loss"][()]), file["grad"][()].astype(float)
        return loss, gradient[:, 0] if on_scores else gradient[0, 1:] / across


def measure(engine):
    """{spec: (losses by place, pull on the positive by place, push on each negative at MIDDLE)}"""
    curves = {}
    for _, specs in FAMILIES:
        for spec in specs:
            answers = [engine(spec, place) for place in PLACES]
            losses = numpy.array([answer[0] for answer in answers])
            pulls = numpy.array([-answer[1][0] for answer in answers])
            curves[spec] = losses, pulls, engine(spec, MIDDLE)[1][1:]
    return curves


def scaled(values):
    most = numpy.abs(values).max()
    return values / most if most > 0 else values


def style(name, ink):
    """Of a drawing on the page, whose bytes depend on its name and content alone."""
    return {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9, "text.color": ink,
            "axes.labelcolor": ink, "axes.edgecolor": ink, "xtick.color": ink, "ytick.color": ink}


def save(figure, path):
    drawing = io.StringIO()
    figure.savefig(drawing, transparent=True, metadata={"Date": None})
    pyplot.close(figure)
    with open(path, "w", encoding="utf-8") as file:  # numbers are rounded to a hundredth of a point
        file.write(re.sub(r"(\d+\.\d{2})\d+", r"\1", drawing.getvalue()))


def draw(curves, path, ink, colours):
    """Rows: families. Columns: the loss, the pull on the positive, the push on the negatives."""
    with matplotlib.rc_context({**style("losses", ink), "axes.spines.top": False, "axes.spines.right": False,
                                "axes.linewidth": 0.6, "path.simplify": True, "path.simplify_threshold": 0.5}):
        figure, axes = pyplot.subplots(len(FAMILIES), 3, figsize=(10, 2.15 * len(FAMILIES)),
                                       sharex="col", sharey=True, layout="constrained")
        for row, (family, specs) in zip(axes, FAMILIES):
            for colour, dash, spec in zip(colours, ("-", "--", "-.", ":", (0, (6, 1, 1, 1))), specs):
                losses, pulls, pushes = curves[spec]
                look = {"color": colour, "linestyle": dash, "linewidth": 1.6}
                name = spec.split(":")[0] + (":weight=loglog" if "loglog" in spec else "")
                row[0].plot(PLACES, scaled(losses), label=name, **look)
                row[1].plot(PLACES, scaled(pulls), **look)
                row[2].plot(NEGATIVES, scaled(pushes), **look)
            row[0].set_ylabel(family, fontweight="bold")
            row[0].legend(frameon=False, fontsize=8, loc="best", handlelength=2.6)
            row[0].set_xlim(PLACES[0], PLACES[-1])
            row[1].set_xlim(PLACES[0], PLACES[-1])
            for place in (0.0, 0.6):
                for axis in row[:2]:
                    axis.axvline(place, color=ink, linewidth=0.5, alpha=0.5)
            row[2].axvline(MIDDLE, color=ink, linewidth=0.5, alpha=0.5)
        for axis, title in zip(axes[0], ("loss", "pull on the positive", "push on each negative")):
            axis.set_title(title + ", of its most")
        for axis in axes[-1][:2]:
            axis.set_xlabel("similarity of the positive")
        axes[-1][2].set_xlabel("similarity of the negative")
        save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="build/bin", help="folder with probe (build/bin)")
    parser.add_argument("--out", default="docs", help="folder for the pictures (docs)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder, os.path.join(options.bin, "probe"))
        drawn = {spec.split(":")[0] for _, specs in FAMILIES for spec in specs}
        if drawn | NOT_DRAWN != set(engine.names):
            raise SystemExit("error: not in both the registry and FAMILIES: "
                             f"{sorted((drawn | NOT_DRAWN) ^ set(engine.names))}")
        curves = measure(engine)
    os.makedirs(options.out, exist_ok=True)
    draw(curves, os.path.join(options.out, "losses_light.svg"), "#1f2328",
         ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989"])
    draw(curves, os.path.join(options.out, "losses_dark.svg"), "#d1d7e0",
         ["#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#f778ba"])


if __name__ == "__main__":
    main()
