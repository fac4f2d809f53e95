#include "engine/runtime/operators/int8_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

// A panel has room for the residual of one group in so many: more than weights
// with a normal distribution need, and less than all would take.
constexpr int64_t kGroupsPerResidual = 32;

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The row of the packed matrix for a place in the window, counted row by row.
int64_t DepthwiseRow(const Shape& filter, int kr, int64_t row) {
  const int64_t y = row / filter.dim(1), x = row % filter.dim(1);
  const int64_t groups = RoundUp(filter.dim(0), kr) / kr;
  return (x * groups + y / kr) * kr + y % kr;
}

// The same where rows of the window are filled up.
int64_t FilledRow(const Shape& filter, int kr, int64_t row) {
  const int64_t of_window = filter.dim(1) * filter.dim(2);
  return row / of_window * RoundUp(of_window, kr) + row % of_window;
}

// Where values stand in a group, by their place along its depth and by channel.
std::vector<int32_t> PlacesOf(const PanelLayout& panel) {
  std::vector<int32_t> places;
  places.reserve(static_cast<size_t>(panel.kr * panel.nr));
  for (int k = 0; k < panel.kr; ++k) {
    for (int c = 0; c < panel.nr; ++c) {
      places.push_back(PlaceInGroup(panel, c, k));
    }
  }
  return places;
}

// What is subtracted from values of this type, when it is `zero_point` for
// unsigned ones.
int32_t Subtracted(DataType dtype, int32_t zero_point) {
  return dtype == tensorflow::DT_QUINT8 ? zero_point : 0;
}

// Where parts of the packed form stand. OWNERSHIP: borrowed.
struct Parts {
  Parts(const Int8Matrix& m, int8_t* packed)
      : matrix(m),
        values(packed),
        sums(reinterpret_cast<int32_t*>(packed + m.panels() * m.panel_bytes())),
        has_least_weight(sums + m.panels() * m.panel.nr),
        zero_point(has_least_weight + 1) {}

  int8_t* group(int64_t panel, int64_t number) const {
    return values + panel * matrix.panel_bytes() +
           number * matrix.group_bytes();
  }
  // How many groups of residual a panel has, and then which they are for.
  int32_t* residual(int64_t panel) const {
    return zero_point + 1 + panel * (1 + matrix.residual_room);
  }

  const Int8Matrix& matrix;
  int8_t* values;
  int32_t* sums;
  // Whether one of the packed weights is -128.
  int32_t* has_least_weight;
  // Only where there is room for a residual.
  int32_t* zero_point;
};

class Packer {
 public:
  Packer(const Tensor& values, const Int8Matrix& matrix, bool transposed,
         int32_t subtracted, Tensor* packed)
      : matrix_(matrix),
        parts_(matrix, packed->data<int8_t>()),
        in_(static_cast<const uint8_t*>(values.raw())),
        is_signed_(values.dtype() != tensorflow::DT_QUINT8),
        subtracted_(Subtracted(values.dtype(), subtracted)),
        step_k_(transposed ? 1 : matrix.columns),
        step_c_(transposed ? matrix.depth : 1),
        places_(PlacesOf(matrix.panel)) {
    if (matrix.residual_room > 0) {
      *parts_.zero_point = matrix.zero_point - subtracted;
    }
  }

  // Whether there was room for the residual.
  bool Run(ThreadPool* pool) {
    constexpr int64_t kValuesPerRange = 64 * 1024;
    const int64_t groups = matrix_.groups();
    std::atomic<bool> fits{true};
    has_least_weight_ = false;
    pool->ParallelFor(matrix_.panels(),
                      1 + kValuesPerRange / (groups * matrix_.group_bytes()),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t g = 0; g < groups; ++g) {
                          for (int64_t b = begin; b < end; ++b) {
                            if (!PackGroup(b, g)) fits = false;
                          }
                        }
                      });
    *parts_.has_least_weight = has_least_weight_ ? 1 : 0;
    return fits;
  }

 private:
  // Calls visit(weight, column, place) for the weights of a group; `column` is
  // counted in the panel, `place` in the group.
  template <typename Visit>
  void ForEach(int64_t panel, int64_t group, Visit visit) const {
    const int64_t nr = matrix_.panel.nr, kr = matrix_.panel.kr;
    const int64_t columns = std::min(nr, matrix_.columns - panel * nr);
    const int64_t rows = std::min(kr, matrix_.depth - group * kr);
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t* places = places_.data() + i * nr;
      const uint8_t* row =
          in_ + (group * kr + i) * step_k_ + panel * nr * step_c_;
      for (int64_t c = 0; c < columns; ++c) {
        const uint8_t value = row[c * step_c_];
        visit((is_signed_ ? int32_t{static_cast<int8_t>(value)} : value) -
                  subtracted_,
              c, places[c]);
      }
    }
  }

  static int32_t Clamped(int32_t weight) {
    return std::clamp(weight, -128, 127);
  }

  bool PackGroup(int64_t panel, int64_t group) {
    int8_t* to = parts_.group(panel, group);
    int32_t* sums = parts_.sums + panel * matrix_.panel.nr;
    bool has_outlier = false, has_least = false;
    ForEach(panel, group, [&](int32_t weight, int64_t column, int64_t place) {
      const int32_t clamped = Clamped(weight);
      to[place] = static_cast<int8_t>(clamped);
      sums[column] = static_cast<int32_t>(static_cast<uint32_t>(sums[column]) +
                                          static_cast<uint32_t>(weight));
      has_outlier |= clamped != weight;
      has_least |= clamped == -128;
    });
    // The residual of what is less is found with it.
    if (has_least) has_least_weight_ = true;
    return !has_outlier || PackResidual(panel, group);
  }

  bool PackResidual(int64_t panel, int64_t group) {
    int32_t* residual = parts_.residual(panel);
    bool is_left = true;
    for (int times = 1; is_left; ++times) {
      const int64_t place = NextResidual(panel, group, times);
      if (place >= matrix_.residual_room) return false;
      residual[0] = std::max(residual[0], ResidualEnd(place));
      residual[1 + place] = static_cast<int32_t>(group);
      int8_t* to = parts_.group(panel, matrix_.groups() + place);
      is_left = false;
      ForEach(panel, group, [&](int32_t weight, int64_t, int64_t at) {
        for (int i = 0; i < times; ++i) weight -= Clamped(weight);
        to[at] = static_cast<int8_t>(Clamped(weight));
        is_left |= Clamped(weight) != weight;
      });
    }
    return true;
  }

  // With room for all, each group has its place.
  bool HasRoomForAll() const {
    return matrix_.residual_room >= matrix_.groups();
  }
  int64_t NextResidual(int64_t panel, int64_t group, int times) const {
    return HasRoomForAll() ? (times - 1) * matrix_.groups() + group
                           : parts_.residual(panel)[0];
  }
  int32_t ResidualEnd(int64_t place) const {
    return static_cast<int32_t>(
        HasRoomForAll() ? RoundUp(place + 1, matrix_.groups()) : place + 1);
  }

  const Int8Matrix& matrix_;
  Parts parts_;
  std::atomic<bool> has_least_weight_{false};
  const uint8_t* in_;
  bool is_signed_;
  int32_t subtracted_;
  int64_t step_k_;
  int64_t step_c_;
  std::vector<int32_t> places_;
};

// `values_for` gives the values for what is subtracted from them.
absl::StatusOr<Tensor> PackValues(
    const Int8Matrix& matrix, bool transposed, ThreadPool* pool,
    absl::FunctionRef<absl::StatusOr<Tensor>(int32_t)> values_for) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({matrix.bytes()}));
  const bool is_value = matrix.zero_point >= 0 && matrix.zero_point <= 255;
  for (int32_t subtracted = is_value ? matrix.zero_point : kInt8Shift;;
       subtracted = kInt8Shift) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor values, values_for(subtracted));
    OPTFARM_ASSIGN_OR_RETURN(Tensor packed,
                             Tensor::Zeros(tensorflow::DT_INT8, shape));
    const bool fits =
        Packer(values, matrix, transposed, subtracted, &packed).Run(pool);
    if (fits || subtracted == kInt8Shift) return packed;
  }
}

// The rows of `values`, each at its place in a matrix whose other rows become
// zero when they are packed.
absl::StatusOr<Tensor> SpreadRows(const Tensor& values,
                                  const Int8Matrix& matrix, int32_t subtracted,
                                  absl::FunctionRef<int64_t(int64_t)> place) {
  const int64_t depth = matrix.depth, columns = matrix.columns;
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({depth, columns}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor rows, Tensor::Zeros(values.dtype(), shape));
  auto* out = static_cast<uint8_t*>(rows.raw());
  std::memset(out, Subtracted(values.dtype(), subtracted),
              static_cast<size_t>(depth * columns));
  const auto* in = static_cast<const uint8_t*>(values.raw());
  for (int64_t row = 0; row < values.num_elements() / columns; ++row) {
    std::memcpy(out + place(row) * columns, in + row * columns,
                static_cast<size_t>(columns));
  }
  return rows;
}

WeightLayout EmptyLayout(std::string name, const Int8Matrix& matrix) {
  WeightLayout layout;
  const PanelLayout& panel = matrix.panel;
  layout.name = absl::StrCat(
      name, ", zero point ", matrix.zero_point, ", panel ", panel.nr, "x",
      panel.kr, "x", panel.depth_multiple, "x", panel.run, "x", panel.block);
  layout.packed_bytes = matrix.bytes();
  return layout;
}

}  // namespace

int64_t Int8Matrix::groups() const {
  return RoundUp(depth, panel.kr) / panel.kr;
}

int64_t Int8Matrix::panels() const {
  return RoundUp(columns, panel.nr) / panel.nr;
}

int64_t Int8Matrix::panel_bytes() const {
  const int64_t unit = DepthUnit(panel) / panel.kr;
  return RoundUp(groups() + residual_room, unit) * group_bytes();
}

int64_t Int8Matrix::bytes() const {
  const int64_t numbers =
      panels() * panel.nr + 1 +
      (residual_room > 0 ? 1 + panels() * (1 + residual_room) : 0);
  return panels() * panel_bytes() +
         numbers * static_cast<int64_t>(sizeof(int32_t));
}

Int8Matrix MakeInt8Matrix(int64_t depth, int64_t columns, int32_t zero_point,
                          const PanelLayout& panel) {
  Int8Matrix matrix = {depth, columns, zero_point, panel};
  if (zero_point != kInt8Shift) {
    matrix.residual_room = 1 + matrix.groups() / kGroupsPerResidual;
  }
  return matrix;
}

Int8Matrix MakeInt8DepthwiseMatrix(const Shape& filter, int32_t zero_point,
                                   const PanelLayout& panel) {
  Int8Matrix matrix = {RoundUp(filter.dim(0), panel.kr) * filter.dim(1),
                       filter.dim(2), zero_point, panel};
  if (zero_point != kInt8Shift) matrix.residual_room = 2 * matrix.groups();
  return matrix;
}

Int8Matrix MakeInt8RowMatrix(const Shape& filter, int32_t zero_point,
                             const PanelLayout& panel) {
  const int64_t of_window = RoundUp(filter.dim(1) * filter.dim(2), panel.kr);
  return MakeInt8Matrix(filter.dim(0) * of_window, filter.dim(3), zero_point,
                        panel);
}

Int8Weights::Int8Weights(PackedWeights packed, const Int8Matrix& matrix)
    : packed_(std::move(packed)),
      matrix_(matrix),
      padded_depth_(matrix.groups() * matrix.panel.kr),
      panels_(matrix.panels()),
      panel_bytes_(matrix.panel_bytes()) {}

WeightLayout Int8Weights::LayoutOf(const Tensor& values,
                                   const Int8Matrix& matrix, bool transposed) {
  WeightLayout layout =
      EmptyLayout(absl::StrCat("int8 ", matrix.depth, "x", matrix.columns,
                               transposed ? " transposed" : ""),
                  matrix);
  layout.pack = [matrix, transposed](const Tensor& weights, ThreadPool* pool,
                                     WeightLayout::Done) {
    return Pack(weights, matrix, transposed, pool);
  };
  layout.unpack = [matrix, transposed, dtype = values.dtype(),
                   shape = values.shape()](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), matrix)
        .Unpack(dtype, shape, transposed);
  };
  return layout;
}

WeightLayout Int8Weights::LayoutOfDepthwise(const Tensor& values,
                                            const Int8Matrix& matrix) {
  const Shape& shape = values.shape();
  WeightLayout layout =
      EmptyLayout(absl::StrCat("int8 depthwise ", shape.ToString()), matrix);
  layout.pack = [shape, matrix](const Tensor& weights, ThreadPool* pool,
                                WeightLayout::Done) {
    return PackDepthwise(weights.Reshaped(shape), matrix, pool);
  };
  layout.unpack = [matrix, dtype = values.dtype(),
                   shape](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), matrix)
        .UnpackDepthwise(dtype, shape);
  };
  return layout;
}

WeightLayout Int8Weights::LayoutOfRows(const Tensor& values,
                                       const Int8Matrix& matrix) {
  const Shape& shape = values.shape();
  WeightLayout layout =
      EmptyLayout(absl::StrCat("int8 rows ", shape.ToString()), matrix);
  layout.pack = [shape, matrix](const Tensor& weights, ThreadPool* pool,
                                WeightLayout::Done) {
    return PackRows(weights.Reshaped(shape), matrix, pool);
  };
  layout.unpack = [matrix, dtype = values.dtype(),
                   shape](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), matrix).UnpackRows(dtype, shape);
  };
  return layout;
}

absl::StatusOr<Tensor> Int8Weights::Pack(const Tensor& values,
                                         const Int8Matrix& matrix,
                                         bool transposed, ThreadPool* pool) {
  return PackValues(matrix, transposed, pool,
                    [&](int32_t) -> absl::StatusOr<Tensor> { return values; });
}

absl::StatusOr<Tensor> Int8Weights::Unpack(DataType dtype, const Shape& shape,
                                           bool transposed) const {
  OPTFARM_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(dtype, shape));
  auto* out = static_cast<uint8_t*>(values.raw());
  const int32_t subtracted =
      Subtracted(dtype, zero_point() == 0 ? matrix_.zero_point : kInt8Shift);
  const int64_t nr = matrix_.panel.nr, kr = matrix_.panel.kr;
  const std::vector<int32_t> places = PlacesOf(matrix_.panel);
  // Adds group `from` of a panel to rows of group `to`; values wrap.
  const auto add = [&](int64_t number, int64_t from, int64_t to) {
    const int8_t* group = panel(number) + from * matrix_.group_bytes();
    const int64_t last = std::min(columns() - number * nr, nr);
    for (int64_t i = 0; i < kr; ++i) {
      const int64_t k = to * kr + i;
      for (int64_t c = 0; c < last && k < depth(); ++c) {
        const int64_t column = number * nr + c;
        uint8_t& value =
            out[transposed ? column * depth() + k : k * columns() + column];
        value = static_cast<uint8_t>(value + group[places[i * nr + c]]);
      }
    }
  };
  std::memset(out, subtracted, static_cast<size_t>(depth() * columns()));
  for (int64_t p = 0; p < panels_; ++p) {
    for (int64_t g = 0; g < matrix_.groups(); ++g) add(p, g, g);
    int64_t from = matrix_.groups();
    for (int32_t to : residual(p)) add(p, from++, to);
  }
  return values;
}

absl::StatusOr<Tensor> Int8Weights::PackDepthwise(const Tensor& values,
                                                  const Int8Matrix& matrix,
                                                  ThreadPool* pool) {
  const Shape& filter = values.shape();
  return PackValues(matrix, false, pool, [&](int32_t subtracted) {
    return SpreadRows(values, matrix, subtracted, [&](int64_t row) {
      return DepthwiseRow(filter, matrix.panel.kr, row);
    });
  });
}

absl::StatusOr<Tensor> Int8Weights::UnpackDepthwise(DataType dtype,
                                                    const Shape& shape) const {
  return UnpackFrom(dtype, shape, [&](int64_t row) {
    return DepthwiseRow(shape, matrix_.panel.kr, row);
  });
}

absl::StatusOr<Tensor> Int8Weights::PackRows(const Tensor& values,
                                             const Int8Matrix& matrix,
                                             ThreadPool* pool) {
  const Shape& filter = values.shape();
  return PackValues(matrix, false, pool, [&](int32_t subtracted) {
    return SpreadRows(values, matrix, subtracted, [&](int64_t row) {
      return FilledRow(filter, matrix.panel.kr, row);
    });
  });
}

absl::StatusOr<Tensor> Int8Weights::UnpackRows(DataType dtype,
                                               const Shape& shape) const {
  return UnpackFrom(dtype, shape, [&](int64_t row) {
    return FilledRow(shape, matrix_.panel.kr, row);
  });
}

absl::StatusOr<Tensor> Int8Weights::UnpackFrom(
    DataType dtype, const Shape& shape,
    absl::FunctionRef<int64_t(int64_t)> place) const {
  OPTFARM_ASSIGN_OR_RETURN(const Shape all,
                           Shape::FromDims({depth(), columns()}));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor rows, Unpack(dtype, all, false));
  OPTFARM_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(dtype, shape));
  const auto* in = static_cast<const uint8_t*>(rows.raw());
  auto* out = static_cast<uint8_t*>(values.raw());
  for (int64_t row = 0; row < values.num_elements() / columns(); ++row) {
    std::memcpy(out + row * columns(), in + place(row) * columns(),
                static_cast<size_t>(columns()));
  }
  return values;
}

const int8_t* Int8Weights::panel(int64_t number) const {
  return packed_.packed().data<int8_t>() + number * panel_bytes_;
}

const int32_t* Int8Weights::column_sums() const {
  return reinterpret_cast<const int32_t*>(panel(panels_));
}

bool Int8Weights::has_least_weight() const {
  return column_sums()[padded_columns()] != 0;
}

int32_t Int8Weights::zero_point() const {
  return matrix_.residual_room == 0 ? 0 : column_sums()[padded_columns() + 1];
}

absl::Span<const int32_t> Int8Weights::residual(int64_t panel) const {
  if (matrix_.residual_room == 0) return {};
  const int32_t* residual = column_sums() + padded_columns() + 2 +
                            panel * (1 + matrix_.residual_room);
  return {residual + 1, static_cast<size_t>(residual[0])};
}

}  // namespace optfarm::runtime
