"""Filling holes in a table as people have it: harmonium beside scikit-learn's imputers.

`imputation.py SET FOLDER TABLES` writes `holed.csv` (one in ten of the seen cells hidden), and `train.csv` and
`test.csv` (one row in five to test) with the holes that the table has by itself. `imputation.py SET FOLDER TABLES
FILLED` measures what a completed `holed.csv` says of the hidden cells, beside what the imputers say, and prints one
JSON object.

A seen cell in data row r (from 0) of a column is hidden if the first 8 hex digits of sha256("r,COLUMN") are 0 mod 10.
Numbers: root mean square of the errors over the standard deviation of the cells that are left, mean over columns.
Words: share of cells that are right, mean over columns.
"""

import csv
import hashlib
import json
import sys

import numpy as np

SETS = {
    "penguins": {
        "file": "penguins_raw.csv",
        "hole": "NA",
        "numbers": [
            "Culmen Length (mm)",
            "Culmen Depth (mm)",
            "Flipper Length (mm)",
            "Body Mass (g)",
            "Delta 15 N (o/oo)",
            "Delta 13 C (o/oo)",
        ],
        "words": ["studyName", "Species", "Island", "Clutch Completion", "Sex"],
    },
    "birds": {
        "file": "birdstrikes.csv",
        "hole": "",
        "numbers": ["Speed IAS in knots", "Cost Total $"],
        "logarithms": ["Cost Total $"],
        "words": [
            "Effect Amount of damage",
            "Aircraft Airline Operator",
            "Origin State",
            "Phase of flight",
            "Wildlife Size",
            "Wildlife Species",
            "Time of day",
        ],
    },
    "weather": {
        "file": "nyc_weather.csv",
        "hole": "NA",
        "numbers": ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"],
        "words": ["origin"],
        "given": ["month", "hour"],
    },
    # Two tables that the package vega-datasets carries.
    "cars": {
        "hole": "",
        "numbers": ["Miles_per_Gallon", "Displacement", "Horsepower", "Weight_in_lbs", "Acceleration", "Year"],
        "words": ["Cylinders", "Origin"],
    },
    "seattle": {
        "hole": "",
        "numbers": ["precipitation", "temp_max", "temp_min", "wind"],
        "words": ["weather"],
        "given": ["month"],
    },
}


def rows_of(name, tables):
    """The rows of a table, each a dict of words."""
    if name == "cars":
        from vega_datasets import data

        frame = data.cars()
        frame["Year"] = frame["Year"].dt.year
        return [
            {k: "" if v != v or v is None else str(v) for k, v in row.items()} for row in frame.to_dict("records")
        ]
    if name == "seattle":
        from vega_datasets import data

        frame = data.seattle_weather()
        frame["month"] = frame["date"].dt.month
        return [{k: str(v) for k, v in row.items()} for row in frame.to_dict("records")]
    with open(f"{tables}/{SETS[name]['file']}", newline="") as file:
        return list(csv.DictReader(file))


def is_hidden(row, column):
    return int(hashlib.sha256(f"{row},{column}".encode()).hexdigest()[:8], 16) % 10 == 0


def write(path, rows, columns):
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, columns, extrasaction="ignore")
        out.writeheader()
        out.writerows(rows)


class Table:
    """What is to be filled, and with what it is measured."""

    def __init__(self, name, tables):
        about = SETS[name]
        self.hole, self.given = about["hole"], about.get("given", [])
        self.numbers, self.words = about["numbers"], about["words"]
        self.logarithms = about.get("logarithms", [])
        self.columns = self.given + self.numbers + self.words
        self.rows = rows_of(name, tables)
        self.hidden = {
            c: [r for r, row in enumerate(self.rows) if row[c] != self.hole and is_hidden(r, c)]
            for c in self.numbers + self.words
        }
        self.holed = [dict(row) for row in self.rows]
        for c, rows in self.hidden.items():
            for r in rows:
                self.holed[r][c] = self.hole

    def prepare(self, folder):
        write(f"{folder}/holed.csv", self.holed, self.columns)
        apart = [is_hidden(r, "test") or is_hidden(r, "apart") for r in range(len(self.rows))]
        write(f"{folder}/train.csv", [x for x, a in zip(self.rows, apart) if not a], self.columns)
        write(f"{folder}/test.csv", [x for x, a in zip(self.rows, apart) if a], self.columns)
        return {"rows": len(self.rows), "hidden": sum(map(len, self.hidden.values()))}

    def number(self, column, cell):
        if cell == self.hole:
            return np.nan
        return np.log10(1 + float(cell)) if column in self.logarithms else float(cell)

    def array(self, rows, column):
        return np.array([self.number(column, row[column]) for row in rows])

    def errors(self, filled):
        """`filled(column)` gives all cells of a column: the error of numbers, the share of right words."""
        numbers, words = [], []
        for c in self.numbers:
            truth, left = self.array(self.rows, c), self.array(self.holed, c)
            found = filled(c)
            if found is None:
                numbers = None
                break
            r = self.hidden[c]
            numbers.append(np.sqrt(np.mean((np.asarray(found)[r] - truth[r]) ** 2)) / np.nanstd(left))
        for c in self.words:
            found = filled(c)
            if found is None:
                words = None
                break
            words.append(np.mean([found[r] == self.rows[r][c] for r in self.hidden[c]]))
        mean = lambda x: None if x is None else float(np.mean(x))
        return {"numbers": mean(numbers), "words": mean(words)}

    def simple(self):
        def filled(c):
            if c in self.numbers:
                return np.full(len(self.rows), np.nanmean(self.array(self.holed, c)))
            seen = [row[c] for row in self.holed if row[c] != self.hole]
            return [max(set(seen), key=seen.count)] * len(self.rows)

        return self.errors(filled)

    def standard(self, columns):
        x = np.column_stack([self.array(self.holed, c) for c in columns])
        mean, deviation = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
        return (x - mean) / deviation, mean, deviation

    def encoded(self):
        """Standardised numbers, then words as one column for each level; the place of each level."""
        columns = self.given + self.numbers
        x, mean, deviation = self.standard(columns)
        parts, levels = [x], {}
        for c in self.words:
            levels[c] = sorted({row[c] for row in self.holed} - {self.hole})
            place = {level: k for k, level in enumerate(levels[c])}
            one = np.zeros((len(self.rows), len(levels[c])))
            for r, row in enumerate(self.holed):
                if row[c] == self.hole:
                    one[r] = np.nan
                else:
                    one[r, place[row[c]]] = 1
            parts.append(one)
        return np.column_stack(parts), columns, (mean, deviation), levels

    def imputed(self, imputer, with_words):
        encoded, columns, (mean, deviation), levels = self.encoded()
        filled = imputer.fit_transform(encoded)
        x = filled[:, : len(columns)] * deviation + mean
        chosen, at = {}, len(columns)
        for c in self.words:
            best = filled[:, at : at + len(levels[c])].argmax(axis=1)
            chosen[c] = [levels[c][k] for k in best] if with_words else None
            at += len(levels[c])
        return self.errors(lambda c: x[:, columns.index(c)] if c in columns else chosen[c])

    def iterative(self):
        """The columns of a hidden word determine one another, so that it only gives the mode back: numbers alone."""
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        return self.imputed(IterativeImputer(random_state=0), False)

    def neighbours(self):
        from sklearn.impute import KNNImputer

        return self.imputed(KNNImputer(n_neighbors=10), True)

    def measure(self, path):
        with open(path, newline="") as file:
            filled = list(csv.DictReader(file))
        ours = lambda c: self.array(filled, c) if c in self.numbers else [row[c] for row in filled]
        return {
            "harmonium": self.errors(ours),
            "simple": self.simple(),
            "neighbours": self.neighbours(),
            "iterative": self.iterative(),
        }


def main():
    table = Table(sys.argv[1], sys.argv[3])
    result = table.measure(sys.argv[4]) if len(sys.argv) > 4 else table.prepare(sys.argv[2])
    print(json.dumps(result))


main()
