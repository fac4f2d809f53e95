#include "engine/runtime/fusion/recurrent_products.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/core/scratch.h"

namespace optfarm::runtime {
namespace {

// UNITS: multiply-adds worth handing to another thread.
constexpr int64_t kGrain = 64 * 1024;
// The rank of the products: steps, rows, columns. Inputs that are handed on
// have more.
constexpr int kProductRank = 3;

// Rows of inputs times some rows of the weights.
struct RowsTimesPart {
  const FloatPanels* panels = nullptr;
  const float* packed = nullptr;
  // Rows [first, first + depth) of the weights.
  int64_t first = 0;
  int64_t depth = 0;
  const float* scale = nullptr;
  const float* bias = nullptr;
  // Where each row of inputs stands.
  const float* const* at = nullptr;
  int64_t rows = 0;
  // rows x columns, like `out`; nullptr for none.
  const float* residual = nullptr;
  float* out = nullptr;
  Rectifier rectifier = Rectifier::kNone;
};

FloatTile TileAt(const RowsTimesPart& p, int64_t row, int64_t panel) {
  const FloatPanels& panels = *p.panels;
  const int64_t width = panels.tiles->width;
  const int64_t column = panel * width;
  FloatTile tile;
  tile.inputs = p.at + row;
  tile.taps = 1;
  tile.run = p.depth;
  tile.weights = p.packed + panels.offset(panel) + p.first * width;
  if (p.scale != nullptr) tile.scale = p.scale + column;
  if (p.bias != nullptr) tile.bias = p.bias + column;
  tile.row_stride = panels.columns;
  const int64_t place = row * panels.columns + column;
  if (p.residual != nullptr) tile.residual = p.residual + place;
  tile.out = p.out + place;
  tile.rectifier = p.rectifier;
  tile.prefetch = reinterpret_cast<const char*>(tile.weights);
  return tile;
}

void RunPanels(const RowsTimesPart& p, int64_t begin, int64_t end) {
  const FloatTiles& tiles = *p.panels->tiles;
  if (p.rows == 1) {
    for (int64_t panel = begin; panel < end; panel += kRowPanels) {
      FloatTile tile = TileAt(p, 0, panel);
      tile.rows = 1;
      tile.columns = static_cast<int>(
          std::min<int64_t>(kRowPanels, end - panel) * tiles.width);
      tiles.row(tile, tiles.width * p.panels->depth);
    }
    return;
  }
  for (int64_t panel = begin; panel < end; ++panel) {
    for (int64_t row = 0; row < p.rows; row += tiles.rows) {
      FloatTile tile = TileAt(p, row, panel);
      tile.rows = static_cast<int>(std::min<int64_t>(tiles.rows, p.rows - row));
      tile.columns = tiles.width;
      tiles.wide(tile);
    }
  }
}

void Multiply(const RowsTimesPart& p, ThreadPool* pool) {
  const int64_t work = p.rows * p.depth * p.panels->tiles->width;
  pool->ParallelFor(
      p.panels->count(), 1 + kGrain / (work + 1),
      [&](int64_t begin, int64_t end) { RunPanels(p, begin, end); });
}

const float* OrNull(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

RowsTimesPart PartOf(const RecurrentLayer& layer, const Tensor& packed) {
  RowsTimesPart part;
  part.panels = &layer.panels;
  part.packed = packed.data<float>();
  part.scale = OrNull(layer.scale);
  return part;
}

absl::StatusOr<std::vector<Tensor>> TakeApart(const RecurrentLayer& layer,
                                              const Tensor& inputs,
                                              const KernelContext& context) {
  Tensor whole = inputs;
  std::vector<Tensor> parts(layer.steps);
  KernelContext unpacking =
      context.WithTensors(absl::MakeSpan(&whole, 1), absl::MakeSpan(parts));
  OPTFARM_RETURN_IF_ERROR(layer.unpack->Compute(&unpacking));
  return parts;
}

class InputProducts final : public Kernel {
 public:
  explicit InputProducts(std::shared_ptr<const RecurrentLayer> layer)
      : layer_(std::move(layer)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& inputs = context->input(0);
    const RecurrentLayer& layer = *layer_;
    if (inputs.dtype() != tensorflow::DT_FLOAT ||
        inputs.rank() != kProductRank ||
        inputs.dim(layer.axis) != layer.steps ||
        inputs.dim(2) != layer.input_depth) {
      return HandOn(context);
    }
    const Tensor* packed = layer.packed.Get(context->pool());
    if (packed == nullptr) return HandOn(context);
    const int64_t batch = inputs.dim(1 - layer.axis);
    const int64_t dims[] = {layer.steps, batch, layer.panels.columns};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    RowsTimesPart part = PartOf(layer, *packed);
    part.depth = layer.input_depth;
    part.bias = OrNull(layer.bias);
    part.rows = layer.steps * batch;
    const Scratch<const float*> at(part.rows);
    for (int64_t row = 0; row < part.rows; ++row) {
      const int64_t place =
          layer.axis == 0 ? row : row % batch * layer.steps + row / batch;
      at[row] = inputs.data<float>() + place * layer.input_depth;
    }
    part.at = at.data();
    part.out = out->data<float>();
    Multiply(part, context->pool());
    return Keep(part, batch, context);
  }

 private:
  absl::Status Keep(const RowsTimesPart& part, int64_t batch,
                    KernelContext* context) const {
    const int64_t dims[] = {batch, part.depth};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    for (size_t i = 0; i < layer_->kept.size(); ++i) {
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out, context->AllocateOutput(static_cast<int>(i) + 1,
                                                tensorflow::DT_FLOAT, shape));
      float* to = out->data<float>();
      const float* const* const at = part.at + layer_->kept[i] * batch;
      for (int64_t row = 0; row < batch; ++row) {
        to = std::copy_n(at[row], part.depth, to);
      }
    }
    return absl::OkStatus();
  }

  // Under a shape that no products have.
  absl::Status HandOn(KernelContext* context) const {
    const Tensor& inputs = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(std::vector<Tensor> parts,
                             TakeApart(*layer_, inputs, *context));
    for (size_t i = 0; i < layer_->kept.size(); ++i) {
      context->SetOutput(static_cast<int>(i) + 1,
                         std::move(parts[layer_->kept[i]]));
    }
    std::vector<int64_t> dims(kProductRank, 1);
    dims.insert(dims.end(), inputs.shape().dims().begin(),
                inputs.shape().dims().end());
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    context->SetOutput(0, inputs.Reshaped(shape));
    return absl::OkStatus();
  }

  const std::shared_ptr<const RecurrentLayer> layer_;
};

class RecurrentProduct final : public Kernel {
 public:
  RecurrentProduct(std::shared_ptr<const RecurrentLayer> layer, int step,
                   Rectifier rectifier, StepChain chain)
      : layer_(std::move(layer)),
        step_(step),
        rectifier_(rectifier),
        chain_(std::move(chain)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& products = context->input(0);
    const Tensor& state = context->input(1);
    const RecurrentLayer& layer = *layer_;
    if (products.rank() > kProductRank) return RunChain(context);
    const int64_t batch = products.dim(1);
    const int64_t depth = layer.panels.depth - layer.input_depth;
    if (state.dtype() != tensorflow::DT_FLOAT || state.rank() != 2 ||
        state.dim(0) != batch || state.dim(1) != depth) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a state of ", state.DebugString(0), " cannot be joined to an input",
          " of ", batch, "x", layer.input_depth, " and multiplied by ",
          layer.panels.depth, " rows of weights"));
    }
    const Tensor* packed = layer.packed.Get(context->pool());
    if (packed == nullptr) {
      return absl::ResourceExhaustedError("no memory for the packed weights");
    }
    const int64_t dims[] = {batch, layer.panels.columns};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    RowsTimesPart part = PartOf(layer, *packed);
    part.first = layer.input_depth;
    part.depth = depth;
    part.rows = batch;
    part.residual =
        products.data<float>() + step_ * batch * layer.panels.columns;
    part.out = out->data<float>();
    part.rectifier = rectifier_;
    const float* const values = state.data<float>();
    if (batch == 1) {
      part.at = &values;
      Multiply(part, context->pool());
      return absl::OkStatus();
    }
    const Scratch<const float*> at(batch);
    for (int64_t row = 0; row < batch; ++row) at[row] = values + row * depth;
    part.at = at.data();
    Multiply(part, context->pool());
    return absl::OkStatus();
  }

 private:
  absl::Status RunChain(KernelContext* context) const {
    const Tensor& handed = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        const Shape shape,
        Shape::FromDims(handed.shape().dims().subspan(kProductRank)));
    OPTFARM_ASSIGN_OR_RETURN(
        std::vector<Tensor> parts,
        TakeApart(*layer_, handed.Reshaped(shape), *context));
    Tensor inputs[] = {std::move(parts[step_]), context->input(1)};
    Tensor output;
    KernelContext chained = context->WithTensors(absl::MakeSpan(inputs),
                                                 absl::MakeSpan(&output, 1));
    OPTFARM_RETURN_IF_ERROR(chain_.Run(&chained));
    context->SetOutput(0, std::move(output));
    return absl::OkStatus();
  }

  const std::shared_ptr<const RecurrentLayer> layer_;
  const int step_;
  const Rectifier rectifier_;
  const StepChain chain_;
};

}  // namespace

std::unique_ptr<Kernel> MakeInputProducts(
    std::shared_ptr<const RecurrentLayer> layer) {
  return std::make_unique<InputProducts>(std::move(layer));
}

std::unique_ptr<Kernel> MakeRecurrentProduct(
    std::shared_ptr<const RecurrentLayer> layer, int step, Rectifier rectifier,
    StepChain chain) {
  return std::make_unique<RecurrentProduct>(std::move(layer), step, rectifier,
                                            std::move(chain));
}

}  // namespace optfarm::runtime
