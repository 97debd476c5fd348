"""The quickstart's sweep: a grid of learning rates and L2 penalties for one logistic regression, each point a job or an
instance of one array job, and the comparison of every result with the float64 reference."""

import dataclasses

import gpu_worker as gw
import numpy

import logreg_reference

EPOCHS = 300
LEARNING_RATES = numpy.geomspace(1e-3, 1e-1, 16)
PENALTIES = numpy.geomspace(1e-6, 1e-1, 16)

NORM_TOLERANCE = 1e-3
LOSS_TOLERANCE = 1e-3
ROWS_TOLERANCE = 1


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Standardised features and 0/1 labels, in the float32 that the jobs see."""

    x: numpy.ndarray
    y: numpy.ndarray

    def exact(self):
        """Returns the numbers in float64, for the reference."""
        return self.x.astype(float), self.y.astype(float)


@dataclasses.dataclass(frozen=True)
class Point:
    id: str
    learning_rate: float
    l2: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What a job gave beside what the reference gives; `fault` is empty where they agree."""

    point: Point
    loss: float
    reference_loss: float
    accuracy: float
    norm_difference: float
    rows_differing: int
    fault: str


def read_dataset(path):
    x, y = logreg_reference.load(path)
    return Dataset(x.astype("<f4"), y.astype("<f4"))


def grid():
    pairs = [(float(rate), float(l2)) for rate in LEARNING_RATES for l2 in PENALTIES]
    # The job computes with the float32 nearest to each number, so the reference does as well.
    pairs = [(float(numpy.float32(rate)), float(numpy.float32(l2))) for rate, l2 in pairs]
    return [Point(f"logreg-{number:03}", rate, l2) for number, (rate, l2) in enumerate(pairs)]


def _job(id, rate, l2, x, y, **each):
    """300 epochs in one step, then the metrics of the weights. The dataset travels by digest, as statics."""
    rows, features = x.shape
    columns = features + 1
    shape = [gw.u32(rows), gw.u32(features)]
    train = ["x", "y", "weights", "moments", rate, l2, *shape, gw.u32(EPOCHS)]
    measure = ["x", "y", "weights", "metrics", l2, *shape]
    return gw.job(
        id,
        buffers={
            "x": x,
            "y": y,
            "weights": {**gw.zeros([columns], "<f4"), **each},
            "moments": {**gw.zeros([2 * columns + 2], "<f4"), **each},
            "metrics": {**gw.zeros([2], "<f4"), **each},
        },
        steps=[
            gw.step("logreg_adam", train, grid=[1]),
            gw.step("logreg_adam", measure, entry="logreg_metrics", grid=[1]),
        ],
        outputs=[
            "weights",
            {"buffer": "metrics", "offset": 0, "bytes": 4, "as": "loss"},
            {"buffer": "metrics", "offset": 4, "bytes": 4, "as": "accuracy"},
        ],
    )


def make_job(point, x, y):
    return _job(point.id, gw.f32(point.learning_rate), gw.f32(point.l2), x, y)


def make_array(id, points, x, y):
    """One job that has the points as its instances."""
    rates, penalties = (
        {"each": {"f32": numpy.array(numbers, "<f4").tobytes()}}
        for numbers in ([point.learning_rate for point in points], [point.l2 for point in points])
    )
    return {**_job(id, rates, penalties, x, y, each=True), "count": len(points)}


def compare(point, dataset, outputs):
    """Trains the reference beside the arrays of one job."""
    x, y = dataset.exact()
    weights = outputs["weights"].astype(float)
    loss = float(outputs["loss"].view("<f4")[0])
    accuracy = float(outputs["accuracy"].view("<f4")[0])
    reference = logreg_reference.train(x, y, point.learning_rate, point.l2, EPOCHS)
    reference_weights, reference_loss, _, reference_predictions = reference
    _, accuracy_of_weights, predictions = logreg_reference.metrics(x, y, weights, point.l2)

    norm_difference = abs(float(numpy.linalg.norm(weights) - numpy.linalg.norm(reference_weights)))
    rows_differing = int(numpy.sum(predictions != reference_predictions))
    rows_miscounted = abs(accuracy - accuracy_of_weights) * len(y)
    # Each is asked as "not within", so that a NaN fails.
    faults = []
    if not norm_difference <= NORM_TOLERANCE:
        faults.append(f"the weights' norm is off by {norm_difference:.2e}")
    if not abs(loss - reference_loss) <= LOSS_TOLERANCE:
        faults.append(f"the loss is {loss:.6f}, not {reference_loss:.6f}")
    if not rows_differing <= ROWS_TOLERANCE:
        faults.append(f"{rows_differing} rows are predicted differently")
    if not rows_miscounted < ROWS_TOLERANCE + 0.5:
        faults.append(f"the accuracy {accuracy:.4f} is not that of the weights, {accuracy_of_weights:.4f}")
    return Comparison(point, loss, float(reference_loss), accuracy, norm_difference, rows_differing, "; ".join(faults))
