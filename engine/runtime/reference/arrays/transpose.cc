// Transpose, and the permutation behind it: dimensions that stay neighbours
// are merged first, so that most transposes become two or three dimensions.
// Then either rows are copied whole, or the dimension whose elements are
// neighbours in the input and the one whose are in the output are exchanged in
// blocks that fit into the first-level cache.

#include "engine/runtime/reference/arrays/transpose.h"

#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// The output walked in its order: sizes, and the input's step per dimension.
struct Walk {
  absl::InlinedVector<int64_t, 6> sizes;
  absl::InlinedVector<int64_t, 6> steps;
};

Walk PlanWalk(const Shape& input, absl::Span<const int> permutation) {
  std::vector<int64_t> strides(input.rank(), 1);
  for (int i = input.rank() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * input.dim(i + 1);
  }
  Walk walk;
  for (int axis : permutation) {
    const int64_t size = input.dim(axis);
    if (size == 1) continue;
    if (!walk.sizes.empty() && walk.steps.back() == strides[axis] * size) {
      walk.sizes.back() *= size;
      walk.steps.back() = strides[axis];
    } else {
      walk.sizes.push_back(size);
      walk.steps.push_back(strides[axis]);
    }
  }
  if (walk.sizes.empty()) {
    walk.sizes.push_back(1);
    walk.steps.push_back(1);
  }
  return walk;
}

// The dimensions of a walk without some of them, one place after the other in
// the output's order.
class Places {
 public:
  Places(const Walk& walk, std::initializer_list<int> without) {
    int64_t out_step = 1;
    for (int i = static_cast<int>(walk.sizes.size()) - 1; i >= 0; --i) {
      if (std::find(without.begin(), without.end(), i) == without.end()) {
        dims_.push_back({walk.sizes[i], walk.steps[i], out_step, 0});
        count_ *= walk.sizes[i];
      }
      out_step *= walk.sizes[i];
    }
  }

  int64_t count() const { return count_; }
  // Of the place: elements from the input's and from the output's first.
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }

  void MoveTo(int64_t place) {
    in_ = out_ = 0;
    for (Dim& dim : dims_) {
      dim.at = place % dim.size;
      place /= dim.size;
      in_ += dim.at * dim.in_step;
      out_ += dim.at * dim.out_step;
    }
  }

  void MoveOn() {
    for (Dim& dim : dims_) {
      in_ += dim.in_step;
      out_ += dim.out_step;
      if (++dim.at < dim.size) return;
      in_ -= dim.size * dim.in_step;
      out_ -= dim.size * dim.out_step;
      dim.at = 0;
    }
  }

 private:
  struct Dim {
    int64_t size, in_step, out_step, at;
  };
  // The innermost first.
  absl::InlinedVector<Dim, 6> dims_;
  int64_t count_ = 1;
  int64_t in_ = 0;
  int64_t out_ = 0;
};

// UNITS: elements. What a thread does at least.
constexpr int64_t kGrain = 16384;

template <typename T>
void CopyRows(const T* in, const Walk& walk, ThreadPool* pool, T* out) {
  const int last = static_cast<int>(walk.sizes.size()) - 1;
  const int64_t row = walk.sizes[last];
  const Places rows(walk, {last});
  pool->ParallelFor(rows.count(), std::max<int64_t>(1, kGrain / row),
                    [&](int64_t begin, int64_t end) {
                      Places at = rows;
                      at.MoveTo(begin);
                      for (int64_t i = begin; i < end; ++i, at.MoveOn()) {
                        std::copy_n(in + at.in(), row, out + at.out());
                      }
                    });
}

// A matrix of `rows` and `columns`, whose rows have neighbours in `in` and
// whose columns have them in `out`.
struct Exchange {
  int64_t rows, columns;
  // Elements from one row of `in`, and from one column of `out`, to the next.
  int64_t in_step, out_step;
};

// Elements of pictures and of most nets, which have code of their own where it
// gains.
template <typename T>
constexpr bool kIsUsual =
    std::is_same_v<T, uint32_t> || std::is_same_v<T, uint8_t>;

// Few rows: a column is written in one piece.
template <int kRows, typename T>
void ExchangeFew(const T* in, const Exchange& block, T* out) {
  for (int64_t c = 0; c < block.columns; ++c) {
    for (int r = 0; r < kRows; ++r) {
      out[c * block.out_step + r] = in[r * block.in_step + c];
    }
  }
}

template <typename T>
void ExchangeBlock(const T* in, const Exchange& block, T* out) {
  if constexpr (kIsUsual<T>) {
    if (block.rows == 3) return ExchangeFew<3>(in, block, out);
  }
  // The longer loop is the inner one.
  if (block.rows < block.columns) {
    for (int64_t r = 0; r < block.rows; ++r) {
      const T* from = in + r * block.in_step;
      for (int64_t c = 0; c < block.columns; ++c) {
        out[c * block.out_step + r] = from[c];
      }
    }
    return;
  }
  for (int64_t c = 0; c < block.columns; ++c) {
    T* to = out + c * block.out_step;
    for (int64_t r = 0; r < block.rows; ++r) to[r] = in[r * block.in_step + c];
  }
}

// Elements of the output from one index of a dimension to the next.
int64_t OutStep(const Walk& walk, int dim) {
  int64_t step = 1;
  for (int i = static_cast<int>(walk.sizes.size()) - 1; i > dim; --i) {
    step *= walk.sizes[i];
  }
  return step;
}

// As ExchangeDims, where few elements of `near` are neighbours and those of
// `beside` follow them in the input: a few rows at a time along `beside`, so
// that a line of the cache is read once, also where all rows fall into one of
// its sets.
template <typename T>
void ExchangeNarrow(const T* in, const Walk& walk, int near, int beside,
                    ThreadPool* pool, T* out) {
  constexpr int64_t kRows = 8;
  const int last = static_cast<int>(walk.sizes.size()) - 1;
  const int64_t rows = walk.sizes[last];
  const int64_t strips = (rows + kRows - 1) / kRows;
  const int64_t in_step = walk.steps[beside];
  const int64_t out_step = OutStep(walk, beside);
  const int64_t count = walk.sizes[beside];
  Exchange block = {0, walk.sizes[near], walk.steps[last], OutStep(walk, near)};
  const Places places(walk, {near, beside, last});
  pool->ParallelFor(
      places.count() * strips,
      std::max<int64_t>(1, kGrain / (kRows * count * block.columns)),
      [&](int64_t begin, int64_t end) {
        Places at = places;
        for (int64_t i = begin; i < end; ++i) {
          at.MoveTo(i / strips);
          const int64_t row = i % strips * kRows;
          Exchange some = block;
          some.rows = std::min(kRows, rows - row);
          const T* from = in + at.in() + row * block.in_step;
          T* to = out + at.out() + row;
          for (int64_t k = 0; k < count; ++k) {
            ExchangeBlock(from + k * in_step, some, to + k * out_step);
          }
        }
      });
}

// `near`: the dimension whose elements are neighbours in the input; not the
// last.
template <typename T>
void ExchangeDims(const T* in, const Walk& walk, int near, ThreadPool* pool,
                  T* out) {
  const int last = static_cast<int>(walk.sizes.size()) - 1;
  if constexpr (kIsUsual<T>) {
    const auto beside =
        std::find(walk.steps.begin(), walk.steps.end(), walk.sizes[near]);
    constexpr int64_t kFewColumns = 8;
    if (walk.sizes[near] <= kFewColumns && beside != walk.steps.end() &&
        beside + 1 != walk.steps.end()) {
      return ExchangeNarrow(in, walk, near,
                            static_cast<int>(beside - walk.steps.begin()), pool,
                            out);
    }
  }
  const Exchange whole = {walk.sizes[last], walk.sizes[near], walk.steps[last],
                          OutStep(walk, near)};
  // As many elements as sixteen lines of the cache have of four bytes.
  constexpr int64_t kSide = 16;
  constexpr int64_t kBlock = kSide * kSide;
  const int64_t rows = std::min(
      whole.rows, std::max(kSide, kBlock / std::min(whole.columns, kSide)));
  const int64_t columns =
      std::min(whole.columns, std::max(kSide, kBlock / rows));
  const int64_t strips = (whole.columns + columns - 1) / columns;
  const Places places(walk, {near, last});
  pool->ParallelFor(places.count() * strips,
                    std::max<int64_t>(1, kGrain / (columns * whole.rows)),
                    [&](int64_t begin, int64_t end) {
                      Places at = places;
                      at.MoveTo(begin / strips);
                      int64_t strip = begin % strips;
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t c = strip * columns;
                        Exchange block = whole;
                        block.columns = std::min(columns, whole.columns - c);
                        for (int64_t r = 0; r < whole.rows; r += rows) {
                          block.rows = std::min(rows, whole.rows - r);
                          ExchangeBlock(
                              in + at.in() + r * whole.in_step + c, block,
                              out + at.out() + c * whole.out_step + r);
                        }
                        if (++strip == strips) {
                          strip = 0;
                          at.MoveOn();
                        }
                      }
                    });
}

template <typename T>
void Permute(const T* in, Walk walk, ThreadPool* pool, T* out);

// An element of the size of kCount; void for none that others need too.
template <typename T, int kCount>
using ElementOfSize = std::conditional_t<
    sizeof(T) * kCount == 2, uint16_t,
    std::conditional_t<
        sizeof(T) * kCount == 4, uint32_t,
        std::conditional_t<sizeof(T) * kCount == 8, uint64_t, void>>>;

// The same permutation of rows of kCount elements, each moved as one element: a
// call for each of few would cost more than moving them. False where they do
// not stand at places for such elements.
// REQUIRES: the last dimension has kCount elements, and they are neighbours.
template <int kCount, typename T>
bool PermuteShort(const T* in, const Walk& walk, ThreadPool* pool, T* out) {
  using Row = ElementOfSize<T, kCount>;
  if constexpr (std::is_void_v<Row>) {
    return false;
  } else {
    const auto is_aligned = [](const void* place) {
      return reinterpret_cast<uintptr_t>(place) % alignof(Row) == 0;
    };
    if (!is_aligned(in) || !is_aligned(out)) return false;
    Walk rows = walk;
    rows.sizes.pop_back();
    rows.steps.pop_back();
    for (int64_t& step : rows.steps) step /= kCount;
    Permute(reinterpret_cast<const Row*>(in), std::move(rows), pool,
            reinterpret_cast<Row*>(out));
    return true;
  }
}

template <typename T>
void Permute(const T* in, Walk walk, ThreadPool* pool, T* out) {
  // Of merged dimensions one has its elements side by side in the input.
  const auto near = std::find(walk.steps.begin(), walk.steps.end(), 1);
  OPTFARM_CHECK(near != walk.steps.end());
  const int dim = static_cast<int>(near - walk.steps.begin());
  if (dim + 1 == static_cast<int>(walk.steps.size())) {
    const int64_t row = walk.sizes.back();
    if (row == 2 && PermuteShort<2>(in, walk, pool, out)) return;
    if (row == 4 && PermuteShort<4>(in, walk, pool, out)) return;
    CopyRows(in, walk, pool, out);
  } else {
    ExchangeDims(in, walk, dim, pool, out);
  }
}

absl::StatusOr<std::vector<int>> ReadPermutation(const Tensor& perm, int rank) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           ReadIntegers(perm, "perm"));
  std::vector<int> permutation;
  std::vector<bool> seen(rank, false);
  for (int64_t value : values) {
    if (value < 0) value += rank;
    if (value < 0 || value >= rank || seen[value]) break;
    seen[value] = true;
    permutation.push_back(static_cast<int>(value));
  }
  if (static_cast<int>(values.size()) != rank ||
      static_cast<int>(permutation.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("perm [", absl::StrJoin(values, ","),
                     "] is no permutation of the ", rank, " dimensions of x"));
  }
  return permutation;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTranspose(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> permutation,
                             ReadPermutation(context->input(1), x.rank()));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Transposed(x, permutation, context->pool()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInvertPermutation(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(x, "x", tensorflow::DT_INT32));
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 1));
    const int64_t count = x.num_elements();
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Allocate(x.dtype(), x.shape()));
    std::fill_n(out.data<int32_t>(), count, -1);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t to = x.data<int32_t>()[i];
      if (to < 0 || to >= count || out.data<int32_t>()[to] >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("x is no permutation: ", to, " at index ", i));
      }
      out.data<int32_t>()[to] = static_cast<int32_t>(i);
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Tensor> Transposed(const Tensor& input,
                                  absl::Span<const int> permutation,
                                  ThreadPool* pool) {
  std::vector<int64_t> dims;
  for (int axis : permutation) dims.push_back(input.dim(axis));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  const Walk walk = PlanWalk(input.shape(), permutation);
  if (walk.sizes.size() == 1 && walk.steps[0] == 1) {
    return input.Reshaped(shape);
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(input.dtype(), shape));
  if (out.num_elements() == 0) return out;
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(input.dtype(), "x", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        Permute(input.data<T>(), walk, pool, out.data<T>());
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<Tensor> NchwToNhwc(const Tensor& input, ThreadPool* pool) {
  return Transposed(input, {0, 2, 3, 1}, pool);
}

absl::StatusOr<Tensor> NhwcToNchw(const Tensor& input, ThreadPool* pool) {
  return Transposed(input, {0, 3, 1, 2}, pool);
}

void AddTransposeKernels(KernelCatalog* catalog) {
  catalog->Add("Transpose", MakeTranspose);
  catalog->Add("InvertPermutation", MakeInvertPermutation);
}

}  // namespace optfarm::runtime
