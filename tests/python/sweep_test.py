#!/usr/bin/env python3
"""The quickstart's comparison accepts what float32 gives and refuses what a broken kernel would."""

import pathlib
import unittest

import check_job
import gpu_worker as gw
import logreg_reference
import numpy
import sweep

DATA = pathlib.Path(__file__).parents[2] / "config/examples/breast_cancer.csv"


def result_of(point, weights, loss, accuracy):
    """What a worker would answer."""
    scalar = [("loss", loss), ("accuracy", accuracy)]
    outputs = [{"name": name, "data": numpy.array([value], "<f4").tobytes()} for name, value in scalar]
    whole = {"name": "weights", "datatype": "FP32", "shape": [len(weights)], "data": weights.astype("<f4").tobytes()}
    return {"id": point.id, "status": "ok", "outputs": [whole, *outputs]}


class Comparison(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dataset = sweep.read_dataset(DATA)
        cls.point = sweep.grid()[-1]
        answer = logreg_reference.train(
            *cls.dataset.exact(), cls.point.learning_rate, cls.point.l2, sweep.EPOCHS
        )
        cls.weights, cls.loss, cls.accuracy, _ = answer

    def fault(self, weights=None, loss=None, accuracy=None):
        weights = self.weights if weights is None else weights
        loss = self.loss if loss is None else loss
        accuracy = self.accuracy if accuracy is None else accuracy
        result = result_of(self.point, weights, loss, accuracy)
        return sweep.compare(self.point, self.dataset, gw.arrays(result)).fault

    def test_the_reference_in_float32_agrees(self):
        self.assertEqual("", self.fault())

    def test_longer_weights_are_refused(self):
        self.assertIn("norm", self.fault(weights=self.weights * 1.01))

    def test_weights_of_the_right_length_that_predict_otherwise_are_refused(self):
        self.assertIn("rows", self.fault(weights=-self.weights))

    def test_another_loss_is_refused(self):
        self.assertIn("loss", self.fault(loss=self.loss + 0.0011))
        self.assertIn("loss", self.fault(loss=float("nan")))

    def test_an_accuracy_that_is_not_the_weights_is_refused(self):
        self.assertIn("accuracy", self.fault(accuracy=self.accuracy - 0.005))


def verdict(job):
    return check_job.verdict(gw.encode(job), lambda payload: check_job.check(payload, check_job.Limits(args=16)))


class Jobs(unittest.TestCase):
    def test_the_grid_is_256_different_points(self):
        self.assertEqual(256, len({(point.learning_rate, point.l2) for point in sweep.grid()}))

    def test_every_job_is_one_that_a_worker_accepts(self):
        dataset = sweep.read_dataset(DATA)
        x, y = gw.Static(dataset.x), gw.Static(dataset.y)
        for point in sweep.grid()[:3]:
            job = sweep.make_job(point, x, y)
            named = {"x": x.buffer(with_data=False), "y": y.buffer(with_data=False)}
            self.assertEqual(("ok", ""), verdict({**job, "buffers": {**job["buffers"], **named}}))

    def test_the_array_has_each_point_as_an_instance_and_is_one_that_a_worker_accepts(self):
        dataset = sweep.read_dataset(DATA)
        points = sweep.grid()[:3]
        job = sweep.make_array("array", points, gw.Static(dataset.x), gw.Static(dataset.y))
        named = {"x": gw.static(dataset.x), "y": gw.static(dataset.y)}
        self.assertEqual(("ok", ""), verdict({**job, "buffers": {**job["buffers"], **named}}))
        train, measure = (step["args"] for step in job["steps"])
        rates, penalties = (numpy.frombuffer(argument["each"]["f32"], "<f4") for argument in train[4:6])
        self.assertEqual([(point.learning_rate, point.l2) for point in points], list(zip(rates, penalties)))
        self.assertEqual(train[5], measure[4])
        self.assertEqual(len(points), job["count"])


if __name__ == "__main__":
    unittest.main()
