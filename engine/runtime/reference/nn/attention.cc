// Attention (Vaswani et al., "Attention Is All You Need") with the forms that
// ONNX's op has: fewer heads of keys than of queries, a cache of keys and
// values, masks, and scores that are bounded.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Rows of queries whose scores are in memory at a time.
constexpr int64_t kRows = 64;

enum class Scores { kNone, kRaw, kCapped, kMasked, kSoftmax };

struct AttentionAttributes {
  int64_t query_heads = 0;
  int64_t key_heads = 0;
  // 0: 1 / sqrt(size of a head).
  float scale = 0.0f;
  // 0: scores are not bounded.
  float softcap = 0.0f;
  bool is_causal = false;
  bool emits_present = false;
  Scores emitted = Scores::kNone;
};

// Heads of one tensor: [batch, heads, rows, size], wherever they lie.
struct Heads {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t rows = 0;
  int64_t size = 0;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  int64_t At(int64_t b, int64_t h) const {
    return b * batch_stride + h * head_stride;
  }
};

// Sizes of tensors without elements may have any product.
int64_t Product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}

Heads DenseHeads(int64_t batch, int64_t heads, int64_t rows, int64_t size) {
  return {batch,
          heads,
          rows,
          size,
          Product(heads, Product(rows, size)),
          Product(rows, size),
          size};
}

// [batch, heads, rows, size], or [batch, rows, heads * size].
absl::StatusOr<Heads> HeadsOf(const Tensor& x, absl::string_view name,
                              int64_t heads) {
  if (x.rank() == 4) {
    return DenseHeads(x.dim(0), x.dim(1), x.dim(2), x.dim(3));
  }
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' of shape ", x.shape().ToString(),
                     " does not hold ", heads, " heads"));
  }
  const int64_t size = x.dim(2) / heads;
  return Heads{x.dim(0), heads,   x.dim(1), size, Product(x.dim(1), x.dim(2)),
               size,     x.dim(2)};
}

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using ConstRows = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;
template <typename T>
using Rows = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;

// An absent optional input is a vector without elements.
bool IsAbsent(const Tensor& x) {
  return x.rank() == 1 && x.num_elements() == 0;
}

// Everything that one run needs.
struct AttentionPlan {
  Heads query;
  Heads key;
  Heads value;
  Heads output;
  // Keys that came from the cache.
  int64_t past = 0;
  // Of `mask`; steps are 0 where it repeats. Keys beyond `mask_keys` are
  // masked.
  int64_t mask_batch_stride = 0;
  int64_t mask_head_stride = 0;
  int64_t mask_row_stride = 0;
  int64_t mask_key_stride = 0;
  int64_t mask_keys = 0;
};

absl::Status PlanMask(const Tensor& mask, AttentionPlan* plan) {
  if (IsAbsent(mask)) return absl::OkStatus();
  const int64_t sizes[] = {plan->query.batch, plan->query.heads,
                           plan->query.rows, plan->key.rows};
  int64_t* strides[] = {&plan->mask_batch_stride, &plan->mask_head_stride,
                        &plan->mask_row_stride, &plan->mask_key_stride};
  int64_t stride = 1;
  bool fits = mask.rank() >= 1 && mask.rank() <= 4;
  for (int k = 0; fits && k < mask.rank(); ++k) {
    const int64_t dim = mask.dim(mask.rank() - 1 - k);
    // Only the last dimension may be too short.
    fits = dim == 1 || dim == sizes[3 - k] || (k == 0 && dim < sizes[3]);
    if (dim != 1) *strides[3 - k] = stride;
    stride *= dim;
    if (k == 0) plan->mask_keys = dim == 1 ? sizes[3] : dim;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a mask of shape ", mask.shape().ToString(), " does not fit scores [",
      sizes[0], ",", sizes[1], ",", sizes[2], ",", sizes[3], "]"));
}

absl::Status CheckPlan(const AttentionPlan& plan) {
  const Heads& q = plan.query;
  const Heads& k = plan.key;
  const Heads& v = plan.value;
  if (q.batch == k.batch && q.batch == v.batch && k.heads == v.heads &&
      k.rows == v.rows && q.size == k.size && k.heads > 0 &&
      q.heads % k.heads == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "queries, keys and values of ", q.batch, ", ", k.batch, ", ", v.batch,
      " examples, ", q.heads, ", ", k.heads, ", ", v.heads, " heads of sizes ",
      q.size, ", ", k.size, ", ", v.size, " and ", k.rows, ", ", v.rows,
      " keys and values do not fit together"));
}

// `past` and `now` joined as [batch, heads, rows, size].
absl::StatusOr<Tensor> Joined(const Tensor& past, const Tensor& now,
                              const Heads& heads) {
  int64_t before = 0;
  if (!IsAbsent(past)) {
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(past, now));
    OPTFARM_RETURN_IF_ERROR(RequireRank(past, "past", 4));
    before = past.dim(2);
    if (past.dim(0) != heads.batch || past.dim(1) != heads.heads ||
        past.dim(3) != heads.size) {
      return absl::InvalidArgumentError(
          absl::StrCat("past keys or values of shape ", past.shape().ToString(),
                       " do not go before ", heads.batch, " examples of ",
                       heads.heads, " heads of size ", heads.size));
    }
  }
  const int64_t dims[] = {heads.batch, heads.heads, before + heads.rows,
                          heads.size};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(now.dtype(), shape));
  float* to = out.data<float>();
  for (int64_t i = 0; i < heads.batch * heads.heads; ++i) {
    if (before > 0) {
      to = std::copy_n(past.data<float>() + i * before * heads.size,
                       before * heads.size, to);
    }
    const float* from =
        now.data<float>() + heads.At(i / heads.heads, i % heads.heads);
    for (int64_t r = 0; r < heads.rows; ++r) {
      to = std::copy_n(from + r * heads.row_stride, heads.size, to);
    }
  }
  return out;
}

// The scores of one row become weights, in place. Keys from `end` on are
// masked.
template <typename T>
void SoftmaxRow(T* scores, int64_t keys, int64_t end) {
  std::fill(scores + end, scores + keys, T(0));
  Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>> row(scores, end);
  if (end == 0) return;
  const T max = row.maxCoeff();
  if (!(max > -std::numeric_limits<T>::infinity())) {
    // Everything is masked.
    row.setZero();
    return;
  }
  row = (row - max).exp();
  row /= row.sum();
}

template <typename T>
class AttentionRun {
 public:
  AttentionRun(const AttentionAttributes& attributes, const AttentionPlan& plan,
               const Tensor& mask, const std::vector<int64_t>& lengths)
      : attributes_(attributes),
        plan_(plan),
        mask_(IsAbsent(mask) ? nullptr : mask.data<T>()),
        lengths_(lengths),
        scale_(attributes.scale != 0.0f
                   ? static_cast<T>(attributes.scale)
                   : T(1) / std::sqrt(static_cast<T>(plan.query.size))) {}

  // `emitted` receives scores [batch, heads, rows, keys]; may be nullptr.
  void RunHead(int64_t b, int64_t h, const T* query, const T* key,
               const T* value, T* out, T* emitted) const {
    const Heads& q = plan_.query;
    const int64_t kv = h / (q.heads / plan_.key.heads);
    const int64_t keys = plan_.key.rows;
    const ConstRows<T> k(key + plan_.key.At(b, kv), keys, q.size,
                         Eigen::OuterStride<>(plan_.key.row_stride));
    const ConstRows<T> v(value + plan_.value.At(b, kv), keys, plan_.value.size,
                         Eigen::OuterStride<>(plan_.value.row_stride));
    Scratch<T> memory(std::min(kRows, q.rows) * keys);
    for (int64_t first = 0; first < q.rows; first += kRows) {
      LeaveIfRunEnded();
      const int64_t rows = std::min(kRows, q.rows - first);
      Eigen::Map<Matrix<T>> scores(memory.data(), rows, keys);
      const ConstRows<T> from(query + q.At(b, h) + first * q.row_stride, rows,
                              q.size, Eigen::OuterStride<>(q.row_stride));
      scores.noalias() = (from * scale_) * k.transpose();
      for (int64_t r = 0; r < rows; ++r) {
        T* at = emitted == nullptr
                    ? nullptr
                    : emitted + ((b * q.heads + h) * q.rows + first + r) * keys;
        FinishRow(b, h, first + r, memory.data() + r * keys, at);
      }
      Rows<T> to(out + plan_.output.At(b, h) + first * plan_.output.row_stride,
                 rows, plan_.value.size,
                 Eigen::OuterStride<>(plan_.output.row_stride));
      to.noalias() = scores * v;
    }
  }

 private:
  // How many keys, from the first, row `r` may look at.
  int64_t EndOfRow(int64_t b, int64_t r) const {
    const int64_t keys = plan_.key.rows;
    int64_t end = keys;
    int64_t before = plan_.past;
    if (!lengths_.empty()) {
      end = std::clamp<int64_t>(lengths_[b], 0, keys);
      if (plan_.past == 0) before = lengths_[b] - plan_.query.rows;
    }
    if (attributes_.is_causal) {
      end = std::min(end, std::clamp<int64_t>(before + r + 1, 0, keys));
    }
    if (mask_ != nullptr) end = std::min(end, plan_.mask_keys);
    return end;
  }

  void FinishRow(int64_t b, int64_t h, int64_t r, T* scores, T* emitted) const {
    const int64_t keys = plan_.key.rows;
    const auto emit_if = [&](Scores step) {
      if (emitted != nullptr && attributes_.emitted == step) {
        std::copy_n(scores, keys, emitted);
      }
    };
    emit_if(Scores::kRaw);
    if (attributes_.softcap > 0.0f) {
      const T cap = static_cast<T>(attributes_.softcap);
      for (int64_t i = 0; i < keys; ++i) {
        scores[i] = cap * std::tanh(scores[i] / cap);
      }
    }
    emit_if(Scores::kCapped);
    const int64_t end = EndOfRow(b, r);
    if (mask_ != nullptr) {
      const T* mask = mask_ + b * plan_.mask_batch_stride +
                      h * plan_.mask_head_stride + r * plan_.mask_row_stride;
      for (int64_t i = 0; i < end; ++i) {
        scores[i] += mask[i * plan_.mask_key_stride];
      }
    }
    if (attributes_.emitted == Scores::kMasked) {
      std::fill(scores + end, scores + keys,
                -std::numeric_limits<T>::infinity());
      emit_if(Scores::kMasked);
    }
    SoftmaxRow(scores, keys, end);
    emit_if(Scores::kSoftmax);
  }

  const AttentionAttributes& attributes_;
  const AttentionPlan& plan_;
  const T* const mask_;
  const std::vector<int64_t>& lengths_;
  const T scale_;
};

// Outputs that nobody asked for have no elements.
absl::Status SetEmptyOutputs(DataType dtype, KernelContext* context) {
  for (int i = 1; i < std::min(context->num_outputs(), 4); ++i) {
    OPTFARM_RETURN_IF_ERROR(
        context->AllocateOutput(i, dtype, Shape({0})).status());
  }
  return absl::OkStatus();
}

// The inputs of one run, the cache joined to keys and values.
struct AttentionInputs {
  Tensor query, key, value, mask;
  std::vector<int64_t> lengths;
  AttentionPlan plan;
};

absl::Status PlanHeads(const AttentionAttributes& attributes,
                       AttentionInputs* in) {
  OPTFARM_ASSIGN_OR_RETURN(in->plan.query,
                           HeadsOf(in->query, "query", attributes.query_heads));
  OPTFARM_ASSIGN_OR_RETURN(in->plan.key,
                           HeadsOf(in->key, "key", attributes.key_heads));
  OPTFARM_ASSIGN_OR_RETURN(in->plan.value,
                           HeadsOf(in->value, "value", attributes.key_heads));
  return CheckPlan(in->plan);
}

absl::Status JoinCache(const KernelContext& context, AttentionInputs* in) {
  OPTFARM_ASSIGN_OR_RETURN(in->key,
                           Joined(context.input(4), in->key, in->plan.key));
  OPTFARM_ASSIGN_OR_RETURN(in->value,
                           Joined(context.input(5), in->value, in->plan.value));
  const Tensor& key = in->key;
  const Tensor& value = in->value;
  in->plan.past = key.dim(2) - in->plan.key.rows;
  in->plan.key = DenseHeads(key.dim(0), key.dim(1), key.dim(2), key.dim(3));
  in->plan.value =
      DenseHeads(value.dim(0), value.dim(1), value.dim(2), value.dim(3));
  return CheckPlan(in->plan);
}

absl::StatusOr<AttentionInputs> ReadInputs(
    const AttentionAttributes& attributes, const KernelContext& context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 7));
  for (int i : {1, 2, 3, 4, 5}) {
    OPTFARM_RETURN_IF_ERROR(
        RequireSameDtype(context.input(0), context.input(i)));
  }
  OPTFARM_RETURN_IF_ERROR(
      RequireDtype(context.input(0), "query", tensorflow::DT_FLOAT));
  AttentionInputs in;
  in.query = context.input(0);
  in.key = context.input(1);
  in.value = context.input(2);
  in.mask = context.input(3);
  OPTFARM_RETURN_IF_ERROR(PlanHeads(attributes, &in));
  if (!IsAbsent(context.input(4)) || attributes.emits_present) {
    OPTFARM_RETURN_IF_ERROR(JoinCache(context, &in));
  }
  OPTFARM_RETURN_IF_ERROR(PlanMask(in.mask, &in.plan));
  if (!IsAbsent(context.input(6))) {
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(context.input(6), "kv_lengths", {in.plan.query.batch}));
    OPTFARM_ASSIGN_OR_RETURN(in.lengths, context.input(6).AsInt64s());
  }
  return in;
}

// The shape of the output, which is laid out as the queries are.
absl::StatusOr<Shape> PlanOutput(AttentionInputs* in) {
  const Heads& q = in->plan.query;
  const int64_t size = in->plan.value.size;
  in->plan.output = DenseHeads(q.batch, q.heads, q.rows, size);
  if (in->query.rank() == 4) {
    return Shape::FromDims(
        std::vector<int64_t>{q.batch, q.heads, q.rows, size});
  }
  const int64_t width = Product(q.heads, size);
  in->plan.output.batch_stride = Product(q.rows, width);
  in->plan.output.head_stride = size;
  in->plan.output.row_stride = width;
  return Shape::FromDims(std::vector<int64_t>{q.batch, q.rows, width});
}

absl::Status RunHeads(const AttentionAttributes& attributes,
                      const AttentionInputs& in, ThreadPool* pool, Tensor* out,
                      Tensor* emitted) {
  const Heads& q = in.plan.query;
  const AttentionRun<float> run(attributes, in.plan, in.mask, in.lengths);
  float* scores = emitted == nullptr ? nullptr : emitted->data<float>();
  pool->ParallelFor(q.batch * q.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run.RunHead(i / q.heads, i % q.heads, in.query.data<float>(),
                  in.key.data<float>(), in.value.data<float>(),
                  out->data<float>(), scores);
    }
  });
  return absl::OkStatus();
}

absl::Status ComputeAttention(const AttentionAttributes& attributes,
                              KernelContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(AttentionInputs in,
                           ReadInputs(attributes, *context));
  const DataType dtype = in.query.dtype();
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, PlanOutput(&in));
  OPTFARM_RETURN_IF_ERROR(SetEmptyOutputs(dtype, context));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, dtype, shape));
  Tensor* emitted = nullptr;
  if (attributes.emitted != Scores::kNone && context->num_outputs() > 3) {
    const Heads& q = in.plan.query;
    const int64_t dims[] = {q.batch, q.heads, q.rows, in.plan.key.rows};
    OPTFARM_ASSIGN_OR_RETURN(const Shape all, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(emitted, context->AllocateOutput(3, dtype, all));
  }
  if (shape.num_elements() > 0) {
    OPTFARM_RETURN_IF_ERROR(
        RunHeads(attributes, in, context->pool(), out, emitted));
  }
  if (attributes.emits_present && context->num_outputs() > 2) {
    context->SetOutput(1, in.key);
    context->SetOutput(2, in.value);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAttention(
    const tensorflow::NodeDef& node) {
  // Eigen's product is much code for each type: half goes through float.
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  AttentionAttributes a;
  OPTFARM_ASSIGN_OR_RETURN(a.query_heads,
                           graph::GetIntOr(node, "query_heads", 0));
  OPTFARM_ASSIGN_OR_RETURN(a.key_heads, graph::GetIntOr(node, "key_heads", 0));
  OPTFARM_ASSIGN_OR_RETURN(a.scale, graph::GetFloatOr(node, "scale", 0.0f));
  OPTFARM_ASSIGN_OR_RETURN(a.softcap, graph::GetFloatOr(node, "softcap", 0.0f));
  OPTFARM_ASSIGN_OR_RETURN(a.is_causal,
                           graph::GetBoolOr(node, "is_causal", false));
  OPTFARM_ASSIGN_OR_RETURN(a.emits_present,
                           graph::GetBoolOr(node, "emits_present", false));
  OPTFARM_ASSIGN_OR_RETURN(const std::string scores,
                           graph::GetStringOr(node, "emitted_scores", ""));
  const struct {
    const char* name;
    Scores scores;
  } kNames[] = {{"", Scores::kNone},
                {"raw", Scores::kRaw},
                {"capped", Scores::kCapped},
                {"masked", Scores::kMasked},
                {"softmax", Scores::kSoftmax}};
  for (const auto& entry : kNames) {
    if (scores != entry.name) continue;
    a.emitted = entry.scores;
    return MakeKernel(
        [a](KernelContext* context) { return ComputeAttention(a, context); });
  }
  return absl::UnimplementedError(
      absl::StrCat("emitted_scores '", scores, "' is not known"));
}

}  // namespace

void AddAttentionKernels(KernelCatalog* catalog) {
  catalog->Add("Attention", MakeAttention);
}

}  // namespace optfarm::runtime
