#!/usr/bin/env python3
"""PNP's experiment in two dimensions (Li et al. 2022, Fig. 6): docs/pnp_toy_light.svg and docs/pnp_toy_dark.svg.

A network of two hidden layers of 30 takes points of the plane to the unit circle and learns four classes, once
with pnp_ib, which gathers what has fallen behind, once with pnp_dq, which leaves it where it is. Four other
classes show what was kept that the first four did not ask for. Each class has 150 points. Training classes lie
in a row, test classes in a column: what tells the test classes apart is of no use in training. (The paper draws
its points without saying where they lie.)

The loss and its gradient come from `probe`, the measures from `eval`; only the network is written here. Prints,
over several starts of the network, R@1 on the test classes and the distances within and between them.
Needs numpy, h5py and matplotlib in the Python that runs it (a throw-away virtual environment will do).

  tools/scripts/plot_pnp_toy.py [--bin build/bin] [--out docs] [--steps 200] [--starts 10]
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

import h5py
import matplotlib
import numpy
from plot_losses import save, style  # in this folder
from matplotlib import pyplot

LOSSES = ["pnp_ib", "pnp_dq"]
POINTS, CLASSES, HIDDEN = 150, 4, 30
KEYS = ["recall_at_1", "dists_intra", "dists_inter"]


def points():
    """{part: (points [600, 2], labels [600])}"""
    random = numpy.random.default_rng(0)
    middles = numpy.array([-1.5, -0.5, 0.5, 1.5])
    labels = numpy.repeat(numpy.arange(CLASSES), POINTS)
    row = numpy.stack([middles, numpy.zeros(CLASSES)], axis=1)[labels]
    return {"training": (row + random.normal(0, 0.15, row.shape), labels),
            "test": (row[:, ::-1] + random.normal(0, 0.15, row.shape), labels + CLASSES)}


class Network:
    """2 -> 30 -> 30 -> 2, ReLU between, trained by Adam."""

    def __init__(self, seed):
        random = numpy.random.default_rng(seed)
        sizes = [2, HIDDEN, HIDDEN, 2]
        self.values = [random.normal(0, numpy.sqrt(2 / a), (a, b)) for a, b in zip(sizes, sizes[1:])]
        self.values += [numpy.zeros(b) for b in sizes[1:]]
        self.first = [numpy.zeros_like(v) for v in self.values]
        self.second = [numpy.zeros_like(v) for v in self.values]
        self.steps = 0

    def forward(self, x):
        self.inputs = []
        for layer in range(3):
            self.inputs.append(x)
            x = x @ self.values[layer] + self.values[3 + layer]
            if layer < 2:
                x = numpy.maximum(x, 0)
        return x

    def step(self, dy, rate=3e-3):
        gradients = [None] * 6
        for layer in (2, 1, 0):
            gradients[layer], gradients[3 + layer] = self.inputs[layer].T @ dy, dy.sum(axis=0)
            dy = (dy @ self.values[layer].T) * (self.inputs[layer] > 0)
        self.steps += 1
        for value, g, m, v in zip(self.values, gradients, self.first, self.second):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            value -= rate * (m / (1 - 0.9**self.steps)) / (numpy.sqrt(v / (1 - 0.999**self.steps)) + 1e-8)


class Engine:
    def __init__(self, folder, programs):
        self.inside, self.outside = os.path.join(folder, "in.h5"), os.path.join(folder, "out.h5")
        self.record, self.programs = os.path.join(folder, "out.json"), programs

    def run(self, program, *words):
        subprocess.run([os.path.join(self.programs, program), *words, "--threads", "1", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)

    def write(self, embeddings, labels):
        with h5py.File(self.inside, "w", libver=("v108", "v110")) as file:
            file["embeddings"], file["labels"] = embeddings.astype(numpy.float32), labels.astype(numpy.int64)

    def gradient(self, loss, embeddings, labels):
        """With respect to embeddings of any length: the normalisation is the engine's too."""
        self.write(embeddings, labels)
        self.run("probe", "--loss", loss, "--in", self.inside, "--out", self.outside, "--normalize")
        with h5py.File(self.outside) as file:
            return file["grad"][()].astype(float)

    def measure(self, embeddings, labels):
        self.write(unit(embeddings), labels)
        self.run("eval", "--embeddings", self.inside, "--json", self.record, "--force")
        with open(self.record, encoding="utf-8") as file:
            metrics = json.load(file)["metrics"]
        return [metrics[key] for key in KEYS]


def unit(rows):
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def draw(sets, embedded, path, ink, colours):
    with matplotlib.rc_context(style("pnp", ink)):
        figure, axes = pyplot.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
        for axis, title in zip(axes, ["points", *LOSSES]):
            for part, marker, radius in (("training", ".", 1.0), ("test", "x", 1.25)):
                where, labels = sets[part]
                if title != "points":
                    where = radius * unit(embedded[title][part])  # test classes on a circle of their own
                for label in numpy.unique(labels):
                    mine = where[labels == label][::3]
                    axis.plot(mine[:, 0], mine[:, 1], marker, markersize=3, linestyle="none",
                              color=colours[label], label=f"{part} {label % CLASSES + 1}")
            axis.set_title(title)
            if title != "points":
                axis.set_xlim(-1.4, 1.4)
                axis.set_ylim(-1.4, 1.4)
            axis.set_aspect("equal")
            axis.tick_params(labelsize=7)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False,
                      fontsize=8, markerscale=2, handletextpad=0.1)
        save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="build/bin", help="folder with probe and eval (build/bin)")
    parser.add_argument("--out", default="docs", help="folder for the pictures (docs)")
    parser.add_argument("--steps", type=int, default=200, help="of Adam, each over all 600 points (200)")
    parser.add_argument("--starts", type=int, default=10, help="of the network (10); the first is drawn")
    options = parser.parse_args()
    sets, drawn = points(), {}
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder, options.bin)
        print("| loss | part | R@1 | within | between |\n|---|---|---|---|---|")
        for loss in LOSSES:
            measured = {part: [] for part in sets}
            for start in range(options.starts):
                network = Network(start)
                for _ in range(options.steps):
                    network.step(engine.gradient(loss, network.forward(sets["training"][0]), sets["training"][1]))
                embedded = {part: network.forward(where) for part, (where, _) in sets.items()}
                drawn.setdefault(loss, embedded)
                for part, (_, labels) in sets.items():
                    measured[part].append(engine.measure(embedded[part], labels))
            for part, rows in measured.items():
                cells = [f"{statistics.mean(column):.3f} ({min(column):.3f} to {max(column):.3f})"
                         for column in zip(*rows)]
                print(f"| {loss} | {part} | " + " | ".join(cells) + " |", flush=True)
    os.makedirs(options.out, exist_ok=True)
    draw(sets, drawn, os.path.join(options.out, "pnp_toy_light.svg"), "#1f2328",
         ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#54aeff", "#e16f24", "#4ac26b", "#a475f9"])
    draw(sets, drawn, os.path.join(options.out, "pnp_toy_dark.svg"), "#d1d7e0",
         ["#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#1f6feb", "#bd561d", "#238636", "#8957e5"])


if __name__ == "__main__":
    main()
