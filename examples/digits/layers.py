"""The layers that the digits classifier is made of, forward and backward, in
numpy. Tensors are NHWC float32 and padding is TensorFlow's, so that the frozen
graph computes exactly what was trained.

Every layer has forward(x, training) -> y and backward(dy) -> dx, which also
leaves the gradients of its parameters in .grads under the names of .params.
"""

import numpy as np


def same_padding(size, kernel, stride):
    """TensorFlow's SAME: (output size, padding before, padding after)."""
    output = -(-size // stride)
    total = max((output - 1) * stride + kernel - size, 0)
    return output, total // 2, total - total // 2


class Layer:
    """A layer without parameters; the others fill params and grads."""

    def __init__(self, name):
        self.name = name
        self.params = {}
        self.grads = {}


class _SpatialLayer(Layer):
    """What convolutions share: padding, and where each kernel tap reads."""

    def __init__(self, name, kernel, stride):
        super().__init__(name)
        self.kernel = kernel
        self.stride = stride

    def pad(self, x):
        self.input_shape = x.shape
        self.rows, top, bottom = same_padding(x.shape[1], self.kernel,
                                              self.stride)
        self.cols, left, right = same_padding(x.shape[2], self.kernel,
                                              self.stride)
        self.top, self.left = top, left
        return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))

    def taps(self):
        """Yields (i, j, slices of the padded input that tap (i, j) reads)."""
        for i in range(self.kernel):
            for j in range(self.kernel):
                yield i, j, (slice(None),
                             slice(i, i + self.stride * self.rows, self.stride),
                             slice(j, j + self.stride * self.cols, self.stride))

    def unpad(self, padded):
        _, height, width, _ = self.input_shape
        return padded[:, self.top:self.top + height,
                      self.left:self.left + width, :]


class Conv2D(_SpatialLayer):
    """Convolution without bias, as one matrix product over gathered patches."""

    def __init__(self, name, rng, kernel, inputs, outputs, stride=1):
        super().__init__(name, kernel, stride)
        fan_in = kernel * kernel * inputs
        self.params['weights'] = rng.normal(
            0, np.sqrt(2 / fan_in),
            (kernel, kernel, inputs, outputs)).astype(np.float32)

    def forward(self, x, training):
        padded = self.pad(x)
        self.padded_shape = padded.shape
        patches = np.stack([padded[at] for _, _, at in self.taps()], axis=3)
        weights = self.params['weights']
        self.patches = patches.reshape(-1, weights[..., 0].size)
        y = self.patches @ weights.reshape(-1, weights.shape[3])
        return y.reshape(x.shape[0], self.rows, self.cols, -1)

    def backward(self, dy):
        weights = self.params['weights']
        flat = dy.reshape(-1, weights.shape[3])
        self.grads['weights'] = (self.patches.T @ flat).reshape(weights.shape)
        spread = (flat @ weights.reshape(-1, weights.shape[3]).T).reshape(
            dy.shape[:3] + weights.shape[:3])
        padded = np.zeros(self.padded_shape, np.float32)
        for i, j, at in self.taps():
            padded[at] += spread[:, :, :, i, j]
        return self.unpad(padded)


class DepthwiseConv2D(_SpatialLayer):
    """One filter for each channel (DepthwiseConv2dNative, multiplier 1)."""

    def __init__(self, name, rng, kernel, channels, stride=1):
        super().__init__(name, kernel, stride)
        self.params['depthwise_weights'] = rng.normal(
            0, np.sqrt(2) / kernel,
            (kernel, kernel, channels, 1)).astype(np.float32)

    def forward(self, x, training):
        self.padded = self.pad(x)
        weights = self.params['depthwise_weights'][..., 0]
        return sum(self.padded[at] * weights[i, j] for i, j, at in self.taps())

    def backward(self, dy):
        weights = self.params['depthwise_weights'][..., 0]
        gradient = np.zeros_like(weights)
        padded = np.zeros_like(self.padded)
        for i, j, at in self.taps():
            gradient[i, j] = np.einsum('nhwc,nhwc->c', self.padded[at], dy)
            padded[at] += dy * weights[i, j]
        self.grads['depthwise_weights'] = gradient[..., None]
        return self.unpad(padded)


class BatchNorm(Layer):
    """Normalizes each channel; keeps the moving statistics for inference."""

    EPSILON = 0.001
    MOMENTUM = 0.9

    def __init__(self, name, channels):
        super().__init__(name)
        self.params['gamma'] = np.ones(channels, np.float32)
        self.params['beta'] = np.zeros(channels, np.float32)
        self.moving_mean = np.zeros(channels, np.float32)
        self.moving_variance = np.ones(channels, np.float32)

    def forward(self, x, training):
        mean, variance = self.moving_mean, self.moving_variance
        if training:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            for moving, seen in ((self.moving_mean, mean),
                                 (self.moving_variance, variance)):
                moving += (1 - self.MOMENTUM) * (seen - moving)
        self.inverse = 1 / np.sqrt(variance + np.float32(self.EPSILON))
        self.normal = (x - mean) * self.inverse
        return self.normal * self.params['gamma'] + self.params['beta']

    def backward(self, dy):
        count = dy.size // dy.shape[3]
        self.grads['beta'] = dy.sum((0, 1, 2))
        self.grads['gamma'] = (dy * self.normal).sum((0, 1, 2))
        return self.params['gamma'] * self.inverse * (
            dy - self.grads['beta'] / count
            - self.normal * self.grads['gamma'] / count)


class Relu6(Layer):
    """min(max(x, 0), 6)."""

    def forward(self, x, training):
        self.open = (x > 0) & (x < 6)
        return np.clip(x, 0, 6)

    def backward(self, dy):
        return dy * self.open


class MaxPool(Layer):
    """2x2, stride 2. Ties send the gradient to the first of the equals."""

    def forward(self, x, training):
        n, height, width, channels = x.shape
        blocks = x.reshape(n, height // 2, 2, width // 2, 2, channels)
        blocks = blocks.transpose(0, 1, 3, 5, 2, 4).reshape(
            n, height // 2, width // 2, channels, 4)
        self.input_shape, self.best = x.shape, blocks.argmax(4)
        return blocks.max(4)

    def backward(self, dy):
        n, height, width, channels = self.input_shape
        blocks = (np.arange(4) == self.best[..., None]) * dy[..., None]
        blocks = blocks.reshape(n, height // 2, width // 2, channels, 2, 2)
        return blocks.transpose(0, 1, 4, 2, 5, 3).reshape(self.input_shape)


class Flatten(Layer):
    """NHWC to [batch, features]."""

    def forward(self, x, training):
        self.input_shape = x.shape
        return x.reshape(x.shape[0], -1)

    def backward(self, dy):
        return dy.reshape(self.input_shape)


class Dense(Layer):
    """x W + b, with a ReLU when asked for."""

    def __init__(self, name, rng, inputs, outputs, relu=False):
        super().__init__(name)
        self.relu = relu
        self.params['weights'] = rng.normal(
            0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)
        self.params['biases'] = np.zeros(outputs, np.float32)

    def forward(self, x, training):
        self.x = x
        y = x @ self.params['weights'] + self.params['biases']
        self.open = y > 0
        return y * self.open if self.relu else y

    def backward(self, dy):
        if self.relu:
            dy = dy * self.open
        self.grads['weights'] = self.x.T @ dy
        self.grads['biases'] = dy.sum(0)
        return dy @ self.params['weights'].T


def softmax(logits):
    exponent = np.exp(logits - logits.max(1, keepdims=True))
    return exponent / exponent.sum(1, keepdims=True)
