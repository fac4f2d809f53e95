"""Writes the trained layers as the frozen GraphDef that a TensorFlow 1.x
pipeline (tf.contrib.slim, freeze_graph) would leave behind: variables have
become Consts read through Identity nodes, batch normalization is still there
as FusedBatchNorm with is_training=false. Only protobuf is needed: the message
classes are generated from this project's proto/tensorflow.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import layers

PROTO_ROOT = pathlib.Path(__file__).resolve().parents[2] / 'proto'

# GraphDef version of TensorFlow 1.3 and 1.4.
PRODUCER = 24

DT_FLOAT, DT_INT32 = 1, 3


def load_graph_messages():
    """Generates the GraphDef classes with protoc and returns their module."""
    folder = tempfile.TemporaryDirectory()
    protos = sorted(str(path.relative_to(PROTO_ROOT)) for path in
                    (PROTO_ROOT / 'tensorflow/core/framework').glob('*.proto'))
    subprocess.run(['protoc', f'--python_out={folder.name}', *protos],
                   cwd=PROTO_ROOT, check=True)
    sys.path.insert(0, folder.name)
    try:
        from tensorflow.core.framework import graph_pb2
    finally:
        sys.path.remove(folder.name)
        folder.cleanup()
    return graph_pb2


class GraphWriter:
    """Adds nodes to a GraphDef. Each method returns the new node's name."""

    def __init__(self):
        self.graph = load_graph_messages().GraphDef()
        self.graph.versions.producer = PRODUCER

    def add(self, op, name, inputs=(), **attrs):
        """Attributes: a bool, int, float or bytes value, a list of ints, or
        ('type', number)."""
        node = self.graph.node.add(op=op, name=name, input=list(inputs))
        for key, value in attrs.items():
            attr = node.attr[key]
            if isinstance(value, bool):
                attr.b = value
            elif isinstance(value, int):
                attr.i = value
            elif isinstance(value, float):
                attr.f = value
            elif isinstance(value, bytes):
                attr.s = value
            elif isinstance(value, list):
                attr.list.i.extend(value)
            else:
                attr.type = value[1]
        return name

    def const(self, name, array, dtype=DT_FLOAT):
        node = self.graph.node.add(op='Const', name=name)
        node.attr['dtype'].type = dtype
        tensor = node.attr['value'].tensor
        tensor.dtype = dtype
        for size in array.shape:
            tensor.tensor_shape.dim.add(size=size)
        tensor.tensor_content = array.tobytes()
        return name

    def variable(self, name, array):
        """A frozen variable: the Const and the Identity that reads it."""
        self.const(name, array)
        read = self.add('Identity', f'{name}/read', [name],
                        T=('type', DT_FLOAT))
        self.graph.node[-1].attr['_class'].list.s.append(
            f'loc:@{name}'.encode())
        return read

    def placeholder(self, name, height, width, channels):
        node = self.graph.node.add(op='Placeholder', name=name)
        node.attr['dtype'].type = DT_FLOAT
        for size in (-1, height, width, channels):
            node.attr['shape'].shape.dim.add(size=size)
        return name


def _spatial_attrs(stride):
    return dict(T=('type', DT_FLOAT), strides=[1, stride, stride, 1],
                padding=b'SAME', data_format=b'NHWC')


def _write_layer(writer, layer, x):
    """Adds one layer that reads tensor x; returns the name of its output."""
    name, floats = layer.name, ('type', DT_FLOAT)
    if isinstance(layer, layers.Conv2D):
        read = writer.variable(f'{name}/weights', layer.params['weights'])
        return writer.add('Conv2D', f'{name}/Conv2D', [x, read],
                          use_cudnn_on_gpu=True, **_spatial_attrs(layer.stride))
    if isinstance(layer, layers.DepthwiseConv2D):
        read = writer.variable(f'{name}/depthwise_weights',
                               layer.params['depthwise_weights'])
        return writer.add('DepthwiseConv2dNative', f'{name}/depthwise',
                          [x, read], **_spatial_attrs(layer.stride))
    if isinstance(layer, layers.BatchNorm):
        reads = [writer.variable(f'{name}/{key}', value) for key, value in (
            ('gamma', layer.params['gamma']), ('beta', layer.params['beta']),
            ('moving_mean', layer.moving_mean),
            ('moving_variance', layer.moving_variance))]
        return writer.add('FusedBatchNorm', f'{name}/FusedBatchNorm',
                          [x, *reads], T=floats, epsilon=layer.EPSILON,
                          data_format=b'NHWC', is_training=False)
    if isinstance(layer, layers.Relu6):
        return writer.add('Relu6', name, [x], T=floats)
    if isinstance(layer, layers.MaxPool):
        return writer.add('MaxPool', name, [x], T=floats, ksize=[1, 2, 2, 1],
                          strides=[1, 2, 2, 1], padding=b'VALID',
                          data_format=b'NHWC')
    if isinstance(layer, layers.Flatten):
        features = int(np.prod(layer.input_shape[1:]))
        shape = writer.const(f'{name}/shape',
                             np.array([-1, features], np.int32), DT_INT32)
        return writer.add('Reshape', name, [x, shape], T=floats,
                          Tshape=('type', DT_INT32))
    if isinstance(layer, layers.Dense):
        weights = writer.variable(f'{name}/weights', layer.params['weights'])
        product = writer.add('MatMul', f'{name}/MatMul', [x, weights],
                             T=floats, transpose_a=False, transpose_b=False)
        biases = writer.variable(f'{name}/biases', layer.params['biases'])
        y = writer.add('BiasAdd', f'{name}/BiasAdd', [product, biases],
                       T=floats, data_format=b'NHWC')
        return writer.add('Relu', f'{name}/Relu', [y],
                          T=floats) if layer.relu else y
    raise TypeError(f'no graph for layer {name} of {type(layer).__name__}')


def frozen_graph(model, height, width, channels):
    """The model (a list of layers, run at least once) as a GraphDef with
    Placeholder `input` and output `softmax`."""
    writer = GraphWriter()
    x = writer.placeholder('input', height, width, channels)
    for layer in model:
        x = _write_layer(writer, layer, x)
    writer.add('Softmax', 'softmax', [x], T=('type', DT_FLOAT))
    return writer.graph
