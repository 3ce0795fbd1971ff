#!/usr/bin/env python3
"""Draws the CSV files of `holdfast sim --csv DIR` with pandas and matplotlib.

    holdfast sim conf/sim/workloads.yaml --csv results
    python3 docs/plots/plot.py results pictures

A directory with one subdirectory for each variant gives one line for each variant.
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # No display is needed.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

FILES = ("flows.csv", "slowdown.csv", "pfc.csv", "queues.csv")
# Slowdowns are drawn in buckets of equally many flows: twenty, as in the figures of HPCC, or fewer of ten flows.
MOST_BUCKETS = 20
FEWEST_FLOWS = 10


def runs(directory):
    """Returns the runs below a directory, by name: itself, or its subdirectories."""
    if all((directory / name).is_file() for name in FILES):
        return {directory.name: directory}
    found = {path.parent.name: path.parent for path in sorted(directory.glob("*/flows.csv"))}
    if not found:
        sys.exit(f"{directory} has no flows.csv; write it with `holdfast sim SCENARIO --csv {directory}`")
    return found


def read(found, name):
    """Returns a file of all runs as one table, with a column `run`."""
    return pd.concat([pd.read_csv(path / name).assign(run=run) for run, path in found.items()])


def plain(axis):
    """Gives a logarithmic axis of slowdowns plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def slowdown_by_size(flows, workload, quantile):
    """Draws the slowdown of flows by size, a line for each run."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for run, own in flows.groupby("run", sort=False):
        own = own.sort_values("bytes", kind="stable").reset_index(drop=True)
        buckets = max(1, min(MOST_BUCKETS, len(own) // FEWEST_FLOWS))
        rows = own.groupby(own.index * buckets // len(own)).agg(
            most=("bytes", "max"), slowdown=("slowdown", lambda values: values.quantile(quantile))
        )
        axes.plot(rows.most, rows.slowdown, marker="o", markersize=3, label=run)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain(axes.yaxis)
    axes.set_title(workload)
    axes.set_xlabel("flow size (bytes)")
    axes.set_ylabel(f"FCT slowdown, p{quantile * 100:g}")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    return figure


def slowdown_of_one_size(flows, workload):
    """Draws the distribution of the slowdown of flows of one size, a line for each run."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for run, own in flows.groupby("run", sort=False):
        values = own.slowdown.sort_values()
        axes.step(values, 100 * np.arange(1, len(values) + 1) / len(values), where="post", label=run)
    axes.set_xscale("log")
    plain(axes.xaxis)
    axes.set_title(workload)
    axes.set_xlabel("FCT slowdown")
    axes.set_ylabel("flows up to this slowdown (%)")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(loc="lower right")
    return figure


def slowdowns(flows):
    """Returns the pictures of the slowdown of each workload, by name."""
    figures = {}
    for workload, own in flows.groupby("workload", sort=False):
        if own.bytes.nunique() == 1:
            figures[f"slowdown-{workload}"] = slowdown_of_one_size(own, workload)
        else:
            figures |= {f"slowdown-{workload}-p{q * 100:g}": slowdown_by_size(own, workload, q) for q in (0.5, 0.95, 0.99)}
    return figures


def pfc(tiers):
    """Draws the share of the time for which the transmitters of each tier were held."""
    tiers = tiers.assign(share=100 * tiers.held_ns / (tiers.transmitters * tiers.end_ns))
    figure, axes = plt.subplots(figsize=(7, 4))
    tiers.pivot(index="tier", columns="run", values="share")[tiers.run.unique()].plot.bar(ax=axes, rot=0)
    axes.set_xlabel("tier (0: hosts, 1: ToR, 2: aggregation, 3: core)")
    axes.set_ylabel("held by PFC (% of the time)")
    axes.grid(True, axis="y", alpha=0.3)
    return figure


def queues(lengths):
    """Draws the distribution of the queue lengths of all switch ports."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for run, own in lengths.groupby("run", sort=False):
        axes.step(own.most_bytes / 1000, 100 * own.share, where="post", label=run)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel("queue (kB)")
    axes.set_ylabel("samples up to this length (%)")
    axes.grid(True, alpha=0.3)
    axes.legend(loc="lower right")
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="directory that `holdfast sim --csv` wrote")
    parser.add_argument("pictures", type=Path, help="directory for the pictures")
    parser.add_argument("--format", default="png", help="file format, e.g. pdf [default: png]")
    arguments = parser.parse_args()
    found = runs(arguments.results)
    arguments.pictures.mkdir(parents=True, exist_ok=True)
    figures = slowdowns(read(found, "flows.csv"))
    figures |= {"pfc": pfc(read(found, "pfc.csv")), "queues": queues(read(found, "queues.csv"))}
    for name, figure in figures.items():
        path = arguments.pictures / f"{name}.{arguments.format}"
        figure.savefig(path, dpi=150, bbox_inches="tight")
        print(path)


if __name__ == "__main__":
    main()
