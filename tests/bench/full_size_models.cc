#include "tests/bench/full_size_models.h"

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "tests/bench/network_writer.h"

namespace optfarm::bench {
namespace {

using tensorflow::NodeDef;

// --- MobileNet v1 ------------------------------------------------------------

Layer NormAndRelu6(const std::string& scope, const Layer& conv,
                   NetworkWriter* net) {
  const Layer norm = net->FusedBatchNorm(scope + "/BatchNorm/FusedBatchNorm",
                                         scope + "/BatchNorm", conv, 1);
  net->Node(scope + "/Relu6", "Relu6", {norm.name});
  return {scope + "/Relu6", norm.channels};
}

FullSizeModel MobileNetV1(uint64_t seed) {
  NetworkWriter net(seed);
  net.Placeholder("input", {1, 224, 224, 3});
  const std::string top = "MobilenetV1/";
  const std::string first = top + "Conv2d_0";
  Layer x = NormAndRelu6(
      first,
      net.Convolution(first + "/Conv2D", first + "/weights", {"input", 3},
                      {.height = 3, .width = 3, .filters = 32, .stride = 2}),
      &net);
  const std::pair<int64_t, int64_t> blocks[] = {
      {64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
      {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  int number = 0;
  for (const auto& [filters, stride] : blocks) {
    const std::string block = absl::StrCat(top, "Conv2d_", ++number);
    const std::string depthwise = block + "_depthwise";
    x = NormAndRelu6(depthwise,
                     net.Depthwise(depthwise + "/depthwise",
                                   depthwise + "/depthwise_weights", x,
                                   {.height = 3, .width = 3, .stride = stride}),
                     &net);
    const std::string pointwise = block + "_pointwise";
    x = NormAndRelu6(
        pointwise,
        net.Convolution(pointwise + "/Conv2D", pointwise + "/weights", x,
                        {.filters = filters}),
        &net);
  }
  x = net.Pool(top + "Logits/AvgPool_1a/AvgPool", "AvgPool", x, 7, 1, "VALID");
  const std::string logits = top + "Logits/Conv2d_1c_1x1";
  x = net.Convolution(logits + "/Conv2D", logits + "/weights", x,
                      {.filters = 1001});
  net.Node(logits + "/BiasAdd", "BiasAdd",
           {x.name, net.Variable(logits + "/biases", {1001}, 0, 0.1f)});
  net.Ints(top + "Predictions/Reshape/shape", {2}, {-1, 1001});
  net.Node(top + "Predictions/Reshape", "Reshape",
           {logits + "/BiasAdd", top + "Predictions/Reshape/shape"});
  net.Node(top + "Predictions/Softmax", "Softmax",
           {top + "Predictions/Reshape"});
  return {net.TakeGraph(), "input", top + "Predictions/Softmax", "1,224,224,3"};
}

// --- ResNet-50 v1 ------------------------------------------------------------

Layer NormedConvolution(const std::string& scope, const Layer& input,
                        const ConvolutionShape& shape, float gain,
                        NetworkWriter* net) {
  return net->FusedBatchNorm(
      scope + "/BatchNorm/FusedBatchNorm", scope + "/BatchNorm",
      net->Convolution(scope + "/Conv2D", scope + "/weights", input, shape),
      gain);
}

Layer Relu(const std::string& name, const Layer& input, NetworkWriter* net) {
  net->Node(name, "Relu", {input.name});
  return {name, input.channels};
}

Layer Bottleneck(const std::string& scope, const Layer& input, int64_t filters,
                 int64_t stride, NetworkWriter* net) {
  Layer shortcut = input;
  if (input.channels != 4 * filters) {
    shortcut = NormedConvolution(scope + "/shortcut", input,
                                 {.filters = 4 * filters, .stride = stride},
                                 0.7f, net);
  }
  Layer x =
      Relu(scope + "/conv1/Relu",
           NormedConvolution(scope + "/conv1", input,
                             {.filters = filters, .stride = stride}, 1, net),
           net);
  x = Relu(
      scope + "/conv2/Relu",
      NormedConvolution(scope + "/conv2", x,
                        {.height = 3, .width = 3, .filters = filters}, 1, net),
      net);
  // Sums of 16 blocks: each adds little.
  x = NormedConvolution(scope + "/conv3", x, {.filters = 4 * filters}, 0.3f,
                        net);
  net->Node(scope + "/add", "Add", {shortcut.name, x.name});
  return Relu(scope + "/Relu", {scope + "/add", 4 * filters}, net);
}

FullSizeModel ResNet50V1(uint64_t seed) {
  NetworkWriter net(seed);
  net.Placeholder("input", {1, 224, 224, 3});
  const std::string top = "resnet_v1_50/";
  Layer x =
      Relu(top + "conv1/Relu",
           NormedConvolution(
               top + "conv1", {"input", 3},
               {.height = 7, .width = 7, .filters = 64, .stride = 2}, 1, &net),
           &net);
  x = net.Pool(top + "pool1/MaxPool", "MaxPool", x, 3, 2, "SAME");
  const std::pair<int64_t, int> stages[] = {
      {64, 3}, {128, 4}, {256, 6}, {512, 3}};
  int number = 0;
  for (const auto& [filters, units] : stages) {
    ++number;
    for (int unit = 1; unit <= units; ++unit) {
      x = Bottleneck(absl::StrCat(top, "block", number, "/unit_", unit), x,
                     filters, unit == 1 && number > 1 ? 2 : 1, &net);
    }
  }
  net.Ints(top + "pool5/axes", {2}, {1, 2});
  graph::SetBool(net.Node(top + "pool5", "Mean", {x.name, top + "pool5/axes"}),
                 "keep_dims", false);
  net.Node(top + "logits/MatMul", "MatMul",
           {top + "pool5",
            net.Variable(top + "logits/weights", {2048, 1001}, 0, 0.05f)});
  net.Node(top + "logits/BiasAdd", "BiasAdd",
           {top + "logits/MatMul",
            net.Variable(top + "logits/biases", {1001}, 0, 0.1f)});
  net.Node(top + "predictions/Softmax", "Softmax", {top + "logits/BiasAdd"});
  return {net.TakeGraph(), "input", top + "predictions/Softmax", "1,224,224,3"};
}

// --- Inception v3 ------------------------------------------------------------

// The convolution of the file of 2015: weights through an Identity, statistics
// through CheckNumerics and Identity, then a batch norm op and a rectifier.
class Inception {
 public:
  explicit Inception(NetworkWriter* net) : net_(net) {}

  Layer Conv(const std::string& scope, const Layer& input,
             const ConvolutionShape& shape) {
    const Layer conv = net_->Convolution(
        scope + "/Conv2D", scope + "/conv2d_params", input, shape);
    const std::string norm = scope + "/batchnorm";
    const std::vector<int64_t> vector = {conv.channels};
    net_->Floats(norm + "/beta", vector, 0, 0.1f);
    net_->Floats(norm + "/gamma", vector, 1, 0.2f);
    net_->Floats(norm + "/moving_mean", vector, 0, 0.1f);
    net_->Floats(norm + "/moving_variance", vector, 1, 0.5f);
    const std::string mean = Checked(norm + "/moving_mean");
    const std::string variance = Checked(norm + "/moving_variance");
    NodeDef* node = net_->Node(
        norm, "BatchNormWithGlobalNormalization",
        {conv.name, mean, variance, norm + "/beta", norm + "/gamma"});
    graph::SetFloat(node, "variance_epsilon", 0.001f);
    graph::SetBool(node, "scale_after_normalization", true);
    net_->Node(scope, "Relu", {norm});
    return {scope, conv.channels};
  }

  Layer MaxPool(const std::string& name, const Layer& input, int64_t stride,
                const std::string& padding) {
    const Layer pool = net_->Pool(name, "MaxPool", input, 3, stride, padding);
    // Of 2015, too: values are checked on the way.
    graph::SetString(
        net_->Node(name + "/CheckNumerics", "CheckNumerics", {pool.name}),
        "message", name);
    return {name + "/CheckNumerics", pool.channels};
  }

  Layer Join(const std::string& name, std::initializer_list<Layer> parts) {
    std::vector<std::string> inputs = {name + "/join/concat_dim"};
    net_->Ints(inputs[0], {}, {3});
    int64_t channels = 0;
    for (const Layer& part : parts) {
      inputs.push_back(part.name);
      channels += part.channels;
    }
    graph::SetInt(net_->Node(name + "/join", "Concat", inputs), "N",
                  static_cast<int64_t>(parts.size()));
    return {name + "/join", channels};
  }

  Layer BlockA(const std::string& name, const Layer& in, int64_t pooled) {
    const Layer a = Conv(name + "/conv", in, {.filters = 64});
    const Layer b = Conv(name + "/tower/conv_1",
                         Conv(name + "/tower/conv", in, {.filters = 48}),
                         {.height = 5, .width = 5, .filters = 64});
    const Layer c1 = Conv(name + "/tower_1/conv", in, {.filters = 64});
    const Layer c2 = Conv(name + "/tower_1/conv_1", c1, Square(3, 96));
    const Layer c = Conv(name + "/tower_1/conv_2", c2, Square(3, 96));
    return Join(name, {a, b, c, Pooled(name, in, pooled)});
  }

  Layer ReduceA(const std::string& name, const Layer& in) {
    const Layer a = Conv(name + "/conv", in, Reducing(384));
    const Layer b1 = Conv(name + "/tower/conv", in, {.filters = 64});
    const Layer b2 = Conv(name + "/tower/conv_1", b1, Square(3, 96));
    const Layer b = Conv(name + "/tower/conv_2", b2, Reducing(96));
    return Join(name, {a, b, MaxPool(name + "/pool", in, 2, "VALID")});
  }

  Layer BlockB(const std::string& name, const Layer& in, int64_t narrow) {
    const Layer a = Conv(name + "/conv", in, {.filters = 192});
    const Layer b1 = Conv(name + "/tower/conv", in, {.filters = narrow});
    const Layer b2 = Conv(name + "/tower/conv_1", b1, Row(7, narrow));
    const Layer b = Conv(name + "/tower/conv_2", b2, Column(7, 192));
    const Layer c1 = Conv(name + "/tower_1/conv", in, {.filters = narrow});
    const Layer c2 = Conv(name + "/tower_1/conv_1", c1, Column(7, narrow));
    const Layer c3 = Conv(name + "/tower_1/conv_2", c2, Row(7, narrow));
    const Layer c4 = Conv(name + "/tower_1/conv_3", c3, Column(7, narrow));
    const Layer c = Conv(name + "/tower_1/conv_4", c4, Row(7, 192));
    return Join(name, {a, b, c, Pooled(name, in, 192)});
  }

  Layer ReduceB(const std::string& name, const Layer& in) {
    const Layer a1 = Conv(name + "/tower/conv", in, {.filters = 192});
    const Layer a = Conv(name + "/tower/conv_1", a1, Reducing(320));
    const Layer b1 = Conv(name + "/tower_1/conv", in, {.filters = 192});
    const Layer b2 = Conv(name + "/tower_1/conv_1", b1, Row(7, 192));
    const Layer b3 = Conv(name + "/tower_1/conv_2", b2, Column(7, 192));
    const Layer b = Conv(name + "/tower_1/conv_3", b3, Reducing(192));
    return Join(name, {a, b, MaxPool(name + "/pool", in, 2, "VALID")});
  }

  Layer BlockC(const std::string& name, const Layer& in) {
    const Layer a = Conv(name + "/conv", in, {.filters = 320});
    const Layer b = Conv(name + "/tower/conv", in, {.filters = 384});
    const Layer b1 = Conv(name + "/tower/mixed/conv", b, Row(3, 384));
    const Layer b2 = Conv(name + "/tower/mixed/conv_1", b, Column(3, 384));
    const Layer c1 = Conv(name + "/tower_1/conv", in, {.filters = 448});
    const Layer c = Conv(name + "/tower_1/conv_1", c1, Square(3, 384));
    const Layer c2 = Conv(name + "/tower_1/mixed/conv", c, Row(3, 384));
    const Layer c3 = Conv(name + "/tower_1/mixed/conv_1", c, Column(3, 384));
    return Join(name, {a, b1, b2, c2, c3, Pooled(name, in, 192)});
  }

 private:
  static ConvolutionShape Square(int64_t size, int64_t filters) {
    return {.height = size, .width = size, .filters = filters};
  }
  static ConvolutionShape Reducing(int64_t filters) {
    return {.height = 3,
            .width = 3,
            .filters = filters,
            .stride = 2,
            .padding = "VALID"};
  }
  static ConvolutionShape Row(int64_t width, int64_t filters) {
    return {.height = 1, .width = width, .filters = filters};
  }
  static ConvolutionShape Column(int64_t height, int64_t filters) {
    return {.height = height, .width = 1, .filters = filters};
  }

  std::string Checked(const std::string& name) {
    graph::SetString(net_->Node(name + "/check", "CheckNumerics", {name}),
                     "message", name);
    net_->Node(name + "/read", "Identity", {name + "/check"});
    return name + "/read";
  }

  Layer Pooled(const std::string& name, const Layer& in, int64_t filters) {
    return Conv(name + "/tower_2/conv",
                net_->Pool(name + "/tower_2/pool", "AvgPool", in, 3, 1, "SAME"),
                {.filters = filters});
  }

  NetworkWriter* net_;
};

FullSizeModel InceptionV3(uint64_t seed) {
  NetworkWriter net(seed);
  Inception inception(&net);
  net.Placeholder("Mul", {1, 299, 299, 3});
  const auto square = [](int64_t filters, const std::string& padding) {
    return ConvolutionShape{
        .height = 3, .width = 3, .filters = filters, .padding = padding};
  };
  Layer x = inception.Conv("conv", {"Mul", 3},
                           {.height = 3,
                            .width = 3,
                            .filters = 32,
                            .stride = 2,
                            .padding = "VALID"});
  x = inception.Conv("conv_1", x, square(32, "VALID"));
  x = inception.Conv("conv_2", x, square(64, "SAME"));
  x = inception.MaxPool("pool", x, 2, "VALID");
  x = inception.Conv("conv_3", x, {.filters = 80, .padding = "VALID"});
  x = inception.Conv("conv_4", x, square(192, "VALID"));
  x = inception.MaxPool("pool_1", x, 2, "VALID");
  x = inception.BlockA("mixed", x, 32);
  x = inception.BlockA("mixed_1", x, 64);
  x = inception.BlockA("mixed_2", x, 64);
  x = inception.ReduceA("mixed_3", x);
  x = inception.BlockB("mixed_4", x, 128);
  x = inception.BlockB("mixed_5", x, 160);
  x = inception.BlockB("mixed_6", x, 160);
  x = inception.BlockB("mixed_7", x, 192);
  x = inception.ReduceB("mixed_8", x);
  x = inception.BlockC("mixed_9", x);
  x = inception.BlockC("mixed_10", x);
  x = net.Pool("pool_3", "AvgPool", x, 8, 1, "VALID");
  net.Ints("pool_3/_reshape/shape", {2}, {1, 2048});
  net.Node("pool_3/_reshape", "Reshape", {x.name, "pool_3/_reshape/shape"});
  net.Node("softmax/logits/MatMul", "MatMul",
           {"pool_3/_reshape",
            net.Variable("softmax/weights", {2048, 1008}, 0, 0.05f)});
  net.Node("softmax/logits", "BiasAdd",
           {"softmax/logits/MatMul",
            net.Variable("softmax/biases", {1008}, 0, 0.1f)});
  net.Node("softmax", "Softmax", {"softmax/logits"});
  return {net.TakeGraph(), "Mul", "softmax", "1,299,299,3"};
}

}  // namespace

std::vector<std::string> FullSizeModelNames() {
  return {"mobilenet_v1", "resnet50_v1", "inception_v3"};
}

absl::StatusOr<FullSizeModel> MakeFullSizeModel(absl::string_view name,
                                                uint64_t seed) {
  // Zero is the one state that the generator never leaves.
  if (seed == 0) seed = 1;
  if (name == "mobilenet_v1") return MobileNetV1(seed);
  if (name == "resnet50_v1") return ResNet50V1(seed);
  if (name == "inception_v3") return InceptionV3(seed);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no full-size model '", name, "'"));
}

}  // namespace optfarm::bench
