#!/usr/bin/python3
"""Trains the digits classifier and writes the files of this folder:

  digits.pb                  the frozen graph: `input` [-1,32,32,3], `softmax`
  images/<label>/<NNNN>.png  the pictures held out for testing; NNNN is the
                             sample's number in sklearn.datasets.load_digits
  labels.txt                 one class name a line, in the order of `softmax`

Needs Debian's python3-sklearn, python3-pil, python3-protobuf and
protobuf-compiler. The seed is fixed and one thread is used: the same machine
writes the same files again.
"""

import argparse
import os
import pathlib
import shutil

# Before numpy is loaded: several threads add in changing order.
os.environ['OPENBLAS_NUM_THREADS'] = '1'

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import freeze
import layers

SIZE = 32
CHANNELS = 3
CLASSES = 10
TEST_PER_CLASS = 30
# The model is fed (pixel - INPUT_MEAN) / INPUT_STD.
INPUT_MEAN = 127.5
INPUT_STD = 127.5
SEED = 20
LEAST_ACCURACY = 0.96


def load_pictures():
    """The UCI digits as uint8 RGB pictures, and their labels. The 8x8 counts
    of ink (0..16) become dark strokes on white, smoothly enlarged."""
    digits = load_digits()
    pictures = []
    for counts in digits.images:
        paper = Image.fromarray((255 - counts * 255 / 16).astype(np.uint8))
        pictures.append(np.array(paper.resize((SIZE, SIZE), Image.BICUBIC)))
    grey = np.stack(pictures)
    return np.repeat(grey[..., None], CHANNELS, axis=3), digits.target


def split(labels, rng):
    """Indices (train, test): TEST_PER_CLASS random samples of each class are
    held out."""
    test = np.sort(np.concatenate([
        rng.permutation(np.flatnonzero(labels == label))[:TEST_PER_CLASS]
        for label in range(CLASSES)]))
    return np.setdiff1d(np.arange(len(labels)), test), test


def build_model(rng):
    def normalized(layer, channels):
        return [layer, layers.BatchNorm(f'{layer.name}/BatchNorm', channels),
                layers.Relu6(f'{layer.name}/Relu6')]

    return [
        *normalized(layers.Conv2D('conv1', rng, 3, CHANNELS, 32, stride=2), 32),
        *normalized(layers.DepthwiseConv2D('conv2_depthwise', rng, 3, 32), 32),
        *normalized(layers.Conv2D('conv2_pointwise', rng, 1, 32, 64), 64),
        *normalized(layers.DepthwiseConv2D('conv3_depthwise', rng, 3, 64,
                                           stride=2), 64),
        *normalized(layers.Conv2D('conv3_pointwise', rng, 1, 64, 128), 128),
        *normalized(layers.Conv2D('conv4', rng, 3, 128, 128, stride=2), 128),
        layers.MaxPool('pool4'),
        layers.Flatten('flatten'),
        layers.Dense('fc5', rng, 2 * 2 * 128, 256, relu=True),
        layers.Dense('logits', rng, 256, CLASSES),
    ]


def forward(model, x, training=False):
    for layer in model:
        x = layer.forward(x, training)
    return x


def shifted(pictures, rng):
    """Each picture moved by up to two pixels, the border repeated."""
    padded = np.pad(pictures, ((0, 0), (2, 2), (2, 2), (0, 0)), mode='edge')
    moves = rng.integers(0, 5, (len(pictures), 2))
    return np.stack([picture[y:y + SIZE, x:x + SIZE]
                     for picture, (y, x) in zip(padded, moves)])


def train(model, x, labels, rng, epochs, batch=32):
    """Stochastic gradient descent with momentum and a cosine schedule."""
    speeds = {}
    steps = epochs * (len(x) // batch)
    step = 0
    for epoch in range(epochs):
        order, loss = rng.permutation(len(x)), 0.0
        for start in range(0, len(x) - batch + 1, batch):
            chosen = order[start:start + batch]
            probabilities = layers.softmax(
                forward(model, shifted(x[chosen], rng), training=True))
            wanted = np.eye(CLASSES, dtype=np.float32)[labels[chosen]]
            loss -= np.log((probabilities * wanted).sum(1) + 1e-12).sum()
            gradient = (probabilities - wanted) / batch
            for layer in reversed(model):
                gradient = layer.backward(gradient)
            rate = 0.05 * 0.5 * (1 + np.cos(np.pi * step / steps))
            update(model, speeds, rate)
            step += 1
        print(f'epoch {epoch + 1:2}/{epochs}: loss {loss / len(x):.4f}',
              flush=True)


def update(model, speeds, rate, momentum=0.9, decay=5e-4):
    for layer in model:
        for key, value in layer.params.items():
            gradient = layer.grads[key]
            if value.ndim > 1:
                gradient = gradient + decay * value
            speed = speeds.get((layer.name, key), 0) * momentum + gradient
            speeds[layer.name, key] = speed
            value -= (rate * speed).astype(np.float32)


def write_pictures(folder, pictures, labels, indices):
    shutil.rmtree(folder, ignore_errors=True)
    for index in indices:
        path = folder / str(labels[index]) / f'{index:04}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pictures[index]).save(path, optimize=True)


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out', type=pathlib.Path, default=here,
                        help='folder to write to (default: this one)')
    parser.add_argument('--epochs', type=int, default=20)
    args = parser.parse_args()

    rng = np.random.default_rng(SEED)
    pictures, labels = load_pictures()
    train_indices, test_indices = split(labels, rng)
    x = ((pictures - INPUT_MEAN) / INPUT_STD).astype(np.float32)
    model = build_model(rng)
    train(model, x[train_indices], labels[train_indices], rng, args.epochs)

    answers = forward(model, x[test_indices]).argmax(1)
    accuracy = (answers == labels[test_indices]).mean()
    print(f'test accuracy {accuracy:.2%} on {len(test_indices)} pictures')
    if accuracy < LEAST_ACCURACY:
        raise SystemExit(f'below {LEAST_ACCURACY:.0%}: nothing was written')

    args.out.mkdir(parents=True, exist_ok=True)
    graph = freeze.frozen_graph(model, SIZE, SIZE, CHANNELS)
    data = graph.SerializeToString(deterministic=True)
    (args.out / 'digits.pb').write_bytes(data)
    (args.out / 'labels.txt').write_text(
        ''.join(f'{label}\n' for label in range(CLASSES)))
    write_pictures(args.out / 'images', pictures, labels, test_indices)
    print(f'wrote {args.out}: digits.pb has {len(graph.node)} nodes, '
          f'{len(data)} bytes')


if __name__ == '__main__':
    main()
