#include "tests/bench/matrix_unit.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::bench {
namespace {

using runtime::Int8Epilogue;
using runtime::Int8Weights;
using runtime::Tensor;

// Requantizes: in the kernel, or behind it where the kernel only stores sums.
class BytesSink final : public runtime::Int8Sink {
 public:
  BytesSink(const runtime::Int8StageFunctions& functions,
            const std::vector<float>& scales, int64_t columns, int nr,
            std::vector<uint8_t>* out)
      : functions_(functions),
        scales_(scales),
        columns_(columns),
        nr_(nr),
        out_(out->data()) {}

  bool FindEpilogue(int64_t row, int64_t column,
                    Int8Epilogue* epilogue) const override {
    epilogue->scales = scales_.data() + column;
    epilogue->has_small_scales = true;
    epilogue->most = 255;
    epilogue->channels =
        static_cast<int>(std::min<int64_t>(nr_, columns_ - column));
    epilogue->stride = columns_;
    epilogue->out = out_ + row * columns_ + column;
    return true;
  }
  void Take(const runtime::Int8Accumulators& tile, int64_t row) const override {
    Int8Epilogue epilogue;
    FindEpilogue(row, tile.channel, &epilogue);
    functions_.requantize(tile, epilogue);
  }

 private:
  const runtime::Int8StageFunctions& functions_;
  const std::vector<float>& scales_;
  int64_t columns_;
  int nr_;
  uint8_t* out_;
};

runtime::WindowAxis AxisOf(int64_t in, const UnitLayer& layer) {
  runtime::WindowAxis axis;
  axis.in = in;
  axis.size = layer.window;
  axis.stride = layer.stride;
  return *runtime::PlaceWindowAxis(axis, runtime::Padding::kSame);
}

// REQUIRES: no row kernel's layer.
Int8Weights PackedWeightsOf(const UnitLayer& layer,
                            const runtime::PanelLayout& panel) {
  const int64_t depth = layer.window * layer.window * layer.channels;
  Tensor filter = *Tensor::Zeros(
      tensorflow::DT_QINT8, *runtime::Shape::FromDims({depth, layer.columns}));
  std::mt19937 random(2);
  auto* weights = static_cast<uint8_t*>(filter.raw());
  for (int64_t i = 0; i < depth * layer.columns; ++i) {
    weights[i] = static_cast<uint8_t>(random());
  }
  const runtime::Int8Matrix matrix =
      runtime::MakeInt8Matrix(depth, layer.columns, runtime::kInt8Shift, panel);
  runtime::ThreadPool pool(1);
  return Int8Weights(
      runtime::PackedWeights(*Int8Weights::Pack(filter, matrix, false, &pool)),
      matrix);
}

}  // namespace

std::string UnitLayer::ToString() const {
  return absl::StrCat(height, "x", width, "x", channels, " ", window, "x",
                      window, "/", stride, " -> ", columns);
}

std::vector<UnitLayer> UnitLayers() {
  const auto square = [](int64_t size, int64_t channels, int64_t window,
                         int64_t stride, int64_t columns) {
    return UnitLayer{size, size, channels, window, stride, columns};
  };
  return {
      // MobileNet v1's pointwise layers.
      square(112, 32, 1, 1, 64),
      square(56, 64, 1, 1, 128),
      square(56, 128, 1, 1, 128),
      square(28, 128, 1, 1, 256),
      square(28, 256, 1, 1, 256),
      square(14, 256, 1, 1, 512),
      square(14, 512, 1, 1, 512),
      square(7, 512, 1, 1, 1024),
      square(7, 1024, 1, 1, 1024),
      square(1, 1024, 1, 1, 1001),
      // ResNet-50's blocks.
      square(56, 64, 1, 1, 64),
      square(56, 64, 3, 1, 64),
      square(56, 64, 1, 1, 256),
      square(56, 256, 1, 1, 64),
      square(56, 256, 1, 2, 512),
      square(28, 128, 3, 1, 128),
      square(28, 512, 1, 1, 128),
      square(14, 256, 3, 1, 256),
      square(14, 1024, 1, 1, 256),
      square(7, 512, 3, 1, 512),
      square(7, 2048, 1, 1, 512),
      square(7, 512, 1, 1, 2048),
      // Some of Inception v3's.
      square(149, 32, 3, 1, 32),
      square(73, 80, 3, 1, 192),
      square(35, 48, 5, 1, 64),
      square(35, 96, 3, 1, 96),
      square(17, 768, 1, 1, 192),
      square(8, 2048, 1, 1, 384),
  };
}

UnitProduct::UnitProduct(const UnitLayer& layer,
                         const runtime::Int8Kernels& kernels)
    : vector_(kernels), matrix_(kernels) {
  // Each alone: no estimate chooses.
  vector_.matrix = nullptr;
  matrix_.gemm = std::exchange(matrix_.matrix, nullptr);
  std::mt19937 random(1);
  values_.resize(
      static_cast<size_t>(layer.height * layer.width * layer.channels));
  for (uint8_t& value : values_) value = static_cast<uint8_t>(random());
  input_.values = values_.data();
  input_.channels = layer.channels;
  input_.zero_point = 128;
  input_.window.y = AxisOf(layer.height, layer);
  input_.window.x = AxisOf(layer.width, layer);
  weights_ = PackedWeightsOf(layer, kernels.panel());
  scales_.assign(static_cast<size_t>(weights_.padded_columns()), 1e-4f);
  result_.resize(static_cast<size_t>(input_.rows() * layer.columns));
}

void UnitProduct::Run(bool by_matrix_unit, runtime::ThreadPool* pool) {
  const runtime::Int8Kernels& kernels = by_matrix_unit ? matrix_ : vector_;
  const BytesSink sink(*kernels.stages, scales_, weights_.columns(),
                       weights_.layout().nr, &result_);
  runtime::Multiply({.input = input_, .weights = weights_, .kernels = kernels},
                    pool, sink);
}

runtime::Int8ProductSize UnitProduct::size() const {
  return {.rows = input_.rows(),
          .depth = weights_.depth(),
          .columns = weights_.columns(),
          .copies_rows = !input_.is_matrix()};
}

}  // namespace optfarm::bench
