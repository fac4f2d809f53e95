#include "engine/runtime/fusion/attention.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/status_macros.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/float_panels.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes of scores that are in memory at a time, for each thread.
constexpr int64_t kScoreBytes = 128 * 1024;
constexpr int64_t kMostRows = 64;
// With fewer queries, packing keys and values would cost more than it brings.
constexpr int64_t kLeastQueries = 4;

using Sizes = absl::InlinedVector<int64_t, 4>;

// --- Matrices in tensors -----------------------------------------------------

// The last two dimensions are matrices; the leading ones are batch and heads.
struct Matrices {
  Sizes sizes;
  // UNITS: elements from one index of a dimension to the next.
  Sizes strides;

  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t rows() const { return sizes[rank() - 2]; }
  int64_t columns() const { return sizes[rank() - 1]; }
  int64_t row_stride() const { return strides[rank() - 2]; }
  int64_t column_stride() const { return strides[rank() - 1]; }
  bool HasSameHeads(const Matrices& other) const {
    return rank() == other.rank() &&
           std::equal(sizes.begin(), sizes.end() - 2, other.sizes.begin());
  }
  int64_t heads() const {
    int64_t count = 1;
    for (int i = 0; i < rank() - 2; ++i) count *= sizes[i];
    return count;
  }
  // Where matrix `head` begins.
  int64_t Offset(int64_t head) const {
    int64_t offset = 0;
    for (int i = rank() - 3; i >= 0; --i) {
      offset += head % sizes[i] * strides[i];
      head /= sizes[i];
    }
    return offset;
  }
  void Transpose() {
    std::swap(sizes[rank() - 2], sizes[rank() - 1]);
    std::swap(strides[rank() - 2], strides[rank() - 1]);
  }
};

// How a dense tensor of this shape lies.
Matrices Dense(const Shape& shape) {
  Matrices m;
  m.sizes.assign(shape.dims().begin(), shape.dims().end());
  m.strides.resize(m.sizes.size());
  int64_t stride = 1;
  for (int i = m.rank() - 1; i >= 0; --i) {
    m.strides[i] = stride;
    stride *= m.sizes[i];
  }
  return m;
}

// Dimension i of the result is dimension order[i] of `m`; no order keeps it.
Matrices Permuted(const Matrices& m, const std::vector<int>& order) {
  if (order.empty()) return m;
  Matrices permuted = m;
  for (int i = 0; i < m.rank(); ++i) {
    permuted.sizes[i] = m.sizes[order[i]];
    permuted.strides[i] = m.strides[order[i]];
  }
  return permuted;
}

// A tensor of this shape repeated to `sizes`; nothing where it does not fit.
std::optional<Matrices> Repeated(const Shape& shape, const Sizes& sizes) {
  const int rank = static_cast<int>(sizes.size());
  const int missing = rank - shape.rank();
  if (missing < 0) return std::nullopt;
  const Matrices dense = Dense(shape);
  Matrices m;
  m.sizes = sizes;
  m.strides.assign(rank, 0);
  for (int i = missing; i < rank; ++i) {
    if (dense.sizes[i - missing] == 1) continue;
    if (dense.sizes[i - missing] != sizes[i]) return std::nullopt;
    m.strides[i] = dense.strides[i - missing];
  }
  return m;
}

// --- The kernel --------------------------------------------------------------

// The tensors of one run.
struct AttentionRun {
  Matrices query, key, value;
  // By step; empty where it has no tensor.
  std::vector<Matrices> masks;
  Matrices out;
  const KernelContext* context = nullptr;
  float* to = nullptr;
  FloatPanels keys, values;
  int64_t block = 0;
};

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(AttentionLayer layer) : l_(std::move(layer)) {}

  absl::Status Compute(KernelContext* context) const override {
    AttentionRun run;
    run.context = context;
    if (!Plan(*context, &run)) return l_.chain.Run(context);
    Sizes sizes = run.query.sizes;
    sizes.back() = run.value.columns();
    Sizes permuted = sizes;
    for (size_t i = 0; i < l_.output_order.size(); ++i) {
      permuted[i] = sizes[l_.output_order[i]];
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(permuted));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    const Matrices dense = Dense(shape);
    run.out = dense;
    run.out.sizes = sizes;
    for (size_t i = 0; i < l_.output_order.size(); ++i) {
      run.out.strides[l_.output_order[i]] = dense.strides[i];
    }
    run.to = out->data<float>();
    RunHeads(run, context->pool());
    return absl::OkStatus();
  }

 private:
  // False for inputs that the steps are left to.
  bool Plan(const KernelContext& context, AttentionRun* run) const {
    Matrices* const parts[] = {&run->query, &run->key, &run->value};
    for (int i = 0; i < 3; ++i) {
      const Tensor& input = context.input(i);
      if (input.dtype() != tensorflow::DT_FLOAT || input.rank() < 2 ||
          input.num_elements() == 0 ||
          (!l_.orders[i].empty() &&
           static_cast<int>(l_.orders[i].size()) != input.rank())) {
        return false;
      }
      *parts[i] = Permuted(Dense(input.shape()), l_.orders[i]);
    }
    if (l_.transposes_keys) run->key.Transpose();
    const Matrices& q = run->query;
    if (!q.HasSameHeads(run->key) || !q.HasSameHeads(run->value) ||
        q.columns() != run->key.rows() ||
        run->key.columns() != run->value.rows() || q.rows() < kLeastQueries ||
        q.column_stride() != 1 ||
        (!l_.output_order.empty() &&
         static_cast<int>(l_.output_order.size()) != q.rank())) {
      return false;
    }
    run->keys = {l_.run.tiles, q.columns(), run->key.columns()};
    run->values = {l_.run.tiles, run->value.rows(), run->value.columns()};
    const int64_t rows = kScoreBytes / (4 * run->keys.columns);
    const int64_t height = l_.run.tiles->rows;
    run->block = std::clamp(rows / height * height, height, kMostRows);
    return PlanMasks(context, run);
  }

  bool PlanMasks(const KernelContext& context, AttentionRun* run) const {
    Sizes scores = run->query.sizes;
    scores.back() = run->key.columns();
    for (const ScoreStep& step : l_.steps) {
      Matrices& mask = run->masks.emplace_back();
      if (step.kind == ScoreStep::Kind::kScale) continue;
      const Tensor& input = context.input(step.input);
      const DataType wanted = step.kind == ScoreStep::Kind::kAdd
                                  ? tensorflow::DT_FLOAT
                                  : tensorflow::DT_BOOL;
      std::optional<Matrices> repeated = Repeated(input.shape(), scores);
      if (input.dtype() != wanted || !repeated.has_value()) return false;
      mask = *std::move(repeated);
    }
    return true;
  }

  void RunHeads(const AttentionRun& run, ThreadPool* pool) const {
    const int64_t heads = run.query.heads();
    if (heads >= pool->threads()) {
      pool->ParallelFor(heads, 1, [&](int64_t begin, int64_t end) {
        const Scratch<float> packed(run.keys.size() + run.values.size());
        for (int64_t head = begin; head < end; ++head) {
          PackHead(run, head, packed.data());
          RunRows(run, head, packed.data(), 0, run.query.rows());
        }
      });
      return;
    }
    const Scratch<float> packed(run.keys.size() + run.values.size());
    const int64_t blocks = (run.query.rows() + run.block - 1) / run.block;
    for (int64_t head = 0; head < heads; ++head) {
      PackHead(run, head, packed.data());
      pool->ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
        RunRows(run, head, packed.data(), begin * run.block,
                std::min(end * run.block, run.query.rows()));
      });
    }
  }

  void PackHead(const AttentionRun& run, int64_t head, float* packed) const {
    const KernelContext& context = *run.context;
    const Matrices& k = run.key;
    PackMatrix(run.keys,
               {context.input(1).data<float>() + k.Offset(head), k.row_stride(),
                k.column_stride()},
               l_.scale, packed);
    const Matrices& v = run.value;
    PackMatrix(run.values,
               {context.input(2).data<float>() + v.Offset(head), v.row_stride(),
                v.column_stride()},
               1.0f, packed + run.keys.size());
  }

  void RunRows(const AttentionRun& run, int64_t head, const float* packed,
               int64_t begin, int64_t end) const {
    const int64_t keys = run.keys.columns;
    const Scratch<float> scores(std::min(run.block, end - begin) * keys);
    for (int64_t row = begin; row < end; row += run.block) {
      LeaveIfRunEnded();
      const int64_t rows = std::min(run.block, end - row);
      const Matrices& q = run.query;
      MultiplyRows(run.keys, packed,
                   run.context->input(0).data<float>() + q.Offset(head) +
                       row * q.row_stride(),
                   q.row_stride(), rows, scores.data(), keys);
      for (size_t i = 0; i < l_.steps.size(); ++i) {
        ApplyStep(run, static_cast<int>(i), head, row, rows, scores.data());
      }
      SoftmaxRows all;
      all.in = scores.data();
      all.out = scores.data();
      all.rows = rows;
      all.columns = keys;
      float reciprocals[kMostRows];
      all.reciprocals = reciprocals;
      l_.run.softmax(all);
      const int64_t stride = run.out.row_stride();
      float* const to = run.to + run.out.Offset(head) + row * stride;
      MultiplyRows(run.values, packed + run.keys.size(), scores.data(), keys,
                   rows, to, stride);
      // The sums divide the output, which is smaller than the scores.
      for (int64_t r = 0; r < rows; ++r) {
        l_.run.elements->multiply({to + r * stride, true},
                                  {reciprocals + r, false}, run.values.columns,
                                  to + r * stride);
      }
    }
  }

  static void MultiplyRows(const FloatPanels& panels, const float* packed,
                           const float* from, int64_t from_stride, int64_t rows,
                           float* to, int64_t to_stride) {
    FloatProduct product;
    product.panels = panels;
    product.packed = packed;
    product.out = to;
    product.row_stride = to_stride;
    product.rows = rows;
    product.run = panels.depth;
    product.row_bytes = 4 * panels.depth;
    MultiplyPanelsAlone(
        product,
        [&](int64_t first, int count, float*, const float** at) {
          for (int i = 0; i < count; ++i) {
            at[i] = from + (first + i) * from_stride;
          }
        },
        FirstWeights::Place());
  }

  void ApplyStep(const AttentionRun& run, int number, int64_t head,
                 int64_t first, int64_t rows, float* scores) const {
    const ScoreStep& step = l_.steps[number];
    const int64_t keys = run.keys.columns;
    if (step.kind == ScoreStep::Kind::kScale) {
      return l_.run.elements->multiply({scores, true}, {&step.value, false},
                                       rows * keys, scores);
    }
    const Matrices& mask = run.masks[number];
    const Tensor& input = run.context->input(step.input);
    const int64_t stride = mask.column_stride();
    for (int64_t r = 0; r < rows; ++r, scores += keys) {
      const int64_t at = mask.Offset(head) + (first + r) * mask.row_stride();
      if (step.kind == ScoreStep::Kind::kAdd) {
        l_.run.elements->add({scores, true},
                             {input.data<float>() + at, stride != 0}, keys,
                             scores);
        continue;
      }
      const bool* chosen = input.data<bool>() + at;
      for (int64_t i = 0; i < keys; ++i) {
        if (chosen[i * stride] != step.keeps) scores[i] = step.value;
      }
    }
  }

  const AttentionLayer l_;
};

}  // namespace

std::unique_ptr<Kernel> MakeAttentionKernel(AttentionLayer layer) {
  return std::make_unique<AttentionKernel>(std::move(layer));
}

}  // namespace optfarm::runtime
