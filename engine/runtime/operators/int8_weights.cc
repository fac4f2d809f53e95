#include "engine/runtime/operators/int8_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kGroupBytes = kInt8Columns * kInt8Group;
// A block has room for the rest of one group in so many: more than weights need
// whose codes follow a bell, and less than all would take.
constexpr int64_t kGroupsPerRest = 32;

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The row of the packed matrix for a place in the window, counted line by line.
int64_t DepthwiseRow(const Shape& filter, int64_t row) {
  const int64_t y = row / filter.dim(1), x = row % filter.dim(1);
  const int64_t groups = RoundUp(filter.dim(0), kInt8Group) / kInt8Group;
  return (x * groups + y / kInt8Group) * kInt8Group + y % kInt8Group;
}

// The same where lines are filled up.
int64_t LinedRow(const Shape& filter, int64_t row) {
  const int64_t line = filter.dim(1) * filter.dim(2);
  return row / line * RoundUp(line, kInt8Group) + row % line;
}

// What is taken off a code of this type, where `zero` is to be.
int32_t TakenOff(DataType dtype, int32_t zero) {
  return dtype == tensorflow::DT_QUINT8 ? zero : 0;
}

// Where parts of the packed form stand. OWNERSHIP: borrowed.
struct Parts {
  Parts(const Int8Matrix& m, int8_t* packed)
      : matrix(m),
        codes(packed),
        sums(reinterpret_cast<int32_t*>(packed + m.blocks() * m.block_bytes())),
        zero(sums + m.blocks() * kInt8Columns) {}

  int8_t* group(int64_t block, int64_t number) const {
    return codes + block * matrix.block_bytes() + number * kGroupBytes;
  }
  // How much there is of a block's rest, and then what it is for.
  int32_t* rest(int64_t block) const {
    return zero + 1 + block * (1 + matrix.rest_room);
  }

  const Int8Matrix& matrix;
  int8_t* codes;
  int32_t* sums;
  // Only where there is room for a rest.
  int32_t* zero;
};

class Packer {
 public:
  Packer(const Tensor& codes, const Int8Matrix& matrix, bool transposed,
         int32_t taken, Tensor* packed)
      : matrix_(matrix),
        parts_(matrix, packed->data<int8_t>()),
        in_(static_cast<const uint8_t*>(codes.raw())),
        is_signed_(codes.dtype() != tensorflow::DT_QUINT8),
        taken_(TakenOff(codes.dtype(), taken)),
        step_k_(transposed ? 1 : matrix.columns),
        step_c_(transposed ? matrix.depth : 1) {
    if (matrix.rest_room > 0) *parts_.zero = matrix.zero - taken;
  }

  // Whether there was room for the rest.
  bool Run(ThreadPool* pool) {
    constexpr int64_t kCodesPerRange = 64 * 1024;
    const int64_t groups = matrix_.groups();
    std::atomic<bool> fits{true};
    pool->ParallelFor(matrix_.blocks(),
                      1 + kCodesPerRange / (groups * kGroupBytes),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t g = 0; g < groups; ++g) {
                          for (int64_t b = begin; b < end; ++b) {
                            if (!PackGroup(b, g)) fits = false;
                          }
                        }
                      });
    return fits;
  }

 private:
  // Calls visit(number, place) for the numbers of a group.
  template <typename Visit>
  void ForEach(int64_t block, int64_t group, Visit visit) const {
    const int64_t columns =
        std::min<int64_t>(kInt8Columns, matrix_.columns - block * kInt8Columns);
    const int64_t rows =
        std::min<int64_t>(kInt8Group, matrix_.depth - group * kInt8Group);
    for (int64_t i = 0; i < rows; ++i) {
      const uint8_t* row = in_ + (group * kInt8Group + i) * step_k_ +
                           block * kInt8Columns * step_c_;
      for (int64_t c = 0; c < columns; ++c) {
        const uint8_t code = row[c * step_c_];
        visit((is_signed_ ? int32_t{static_cast<int8_t>(code)} : code) - taken_,
              c * kInt8Group + i);
      }
    }
  }

  static int32_t Fitting(int32_t number) {
    return std::clamp(number, -128, 127);
  }

  bool PackGroup(int64_t block, int64_t group) {
    int8_t* to = parts_.group(block, group);
    int32_t* sums = parts_.sums + block * kInt8Columns;
    bool has_rest = false;
    ForEach(block, group, [&](int32_t number, int64_t place) {
      const int32_t fitting = Fitting(number);
      to[place] = static_cast<int8_t>(fitting);
      sums[place / kInt8Group] =
          static_cast<int32_t>(static_cast<uint32_t>(sums[place / kInt8Group]) +
                               static_cast<uint32_t>(number));
      has_rest |= fitting != number;
    });
    return !has_rest || PackRest(block, group);
  }

  bool PackRest(int64_t block, int64_t group) {
    int32_t* rest = parts_.rest(block);
    bool is_left = true;
    for (int times = 1; is_left; ++times) {
      const int64_t place = NextRest(block, group, times);
      if (place >= matrix_.rest_room) return false;
      rest[0] = std::max(rest[0], RestEnd(place));
      rest[1 + place] = static_cast<int32_t>(group);
      int8_t* to = parts_.group(block, matrix_.groups() + place);
      is_left = false;
      ForEach(block, group, [&](int32_t number, int64_t at) {
        for (int i = 0; i < times; ++i) number -= Fitting(number);
        to[at] = static_cast<int8_t>(Fitting(number));
        is_left |= Fitting(number) != number;
      });
    }
    return true;
  }

  // With room for all, each group has its place.
  bool HasRoomForAll() const { return matrix_.rest_room >= matrix_.groups(); }
  int64_t NextRest(int64_t block, int64_t group, int times) const {
    return HasRoomForAll() ? (times - 1) * matrix_.groups() + group
                           : parts_.rest(block)[0];
  }
  int32_t RestEnd(int64_t place) const {
    return static_cast<int32_t>(
        HasRoomForAll() ? RoundUp(place + 1, matrix_.groups()) : place + 1);
  }

  const Int8Matrix& matrix_;
  Parts parts_;
  const uint8_t* in_;
  bool is_signed_;
  int32_t taken_;
  int64_t step_k_;
  int64_t step_c_;
};

// `codes_for` gives the codes for what is taken off them.
absl::StatusOr<Tensor> PackCodes(
    const Int8Matrix& matrix, bool transposed, ThreadPool* pool,
    absl::FunctionRef<absl::StatusOr<Tensor>(int32_t)> codes_for) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({matrix.bytes()}));
  const bool is_code = matrix.zero >= 0 && matrix.zero <= 255;
  for (int32_t taken = is_code ? matrix.zero : kInt8Shift;;
       taken = kInt8Shift) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor codes, codes_for(taken));
    OPTFARM_ASSIGN_OR_RETURN(Tensor packed,
                             Tensor::Zeros(tensorflow::DT_INT8, shape));
    const bool fits =
        Packer(codes, matrix, transposed, taken, &packed).Run(pool);
    if (fits || taken == kInt8Shift) return packed;
  }
}

// The rows of `codes`, each at its place in a matrix whose other rows become
// zero when they are packed.
absl::StatusOr<Tensor> SpreadRows(const Tensor& codes, const Int8Matrix& matrix,
                                  int32_t taken,
                                  absl::FunctionRef<int64_t(int64_t)> place) {
  const int64_t depth = matrix.depth, columns = matrix.columns;
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({depth, columns}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor rows, Tensor::Zeros(codes.dtype(), shape));
  auto* out = static_cast<uint8_t*>(rows.raw());
  std::memset(out, TakenOff(codes.dtype(), taken),
              static_cast<size_t>(depth * columns));
  const auto* in = static_cast<const uint8_t*>(codes.raw());
  for (int64_t row = 0; row < codes.num_elements() / columns; ++row) {
    std::memcpy(out + place(row) * columns, in + row * columns,
                static_cast<size_t>(columns));
  }
  return rows;
}

WeightLayout EmptyLayout(std::string name, const Int8Matrix& matrix) {
  WeightLayout layout;
  layout.name = absl::StrCat(name, ", zero ", matrix.zero);
  layout.packed_bytes = matrix.bytes();
  return layout;
}

}  // namespace

int64_t Int8Matrix::groups() const {
  return RoundUp(depth, kInt8Group) / kInt8Group;
}

int64_t Int8Matrix::blocks() const {
  return RoundUp(columns, kInt8Columns) / kInt8Columns;
}

int64_t Int8Matrix::block_bytes() const {
  return (groups() + rest_room) * kGroupBytes;
}

int64_t Int8Matrix::bytes() const {
  const int64_t numbers = blocks() * kInt8Columns +
                          (rest_room > 0 ? 1 + blocks() * (1 + rest_room) : 0);
  return blocks() * block_bytes() +
         numbers * static_cast<int64_t>(sizeof(int32_t));
}

Int8Matrix MakeInt8Matrix(int64_t depth, int64_t columns, int32_t zero) {
  Int8Matrix matrix = {depth, columns, zero};
  if (zero != kInt8Shift)
    matrix.rest_room = 1 + matrix.groups() / kGroupsPerRest;
  return matrix;
}

Int8Matrix MakeInt8DepthwiseMatrix(const Shape& filter, int32_t zero) {
  Int8Matrix matrix = {RoundUp(filter.dim(0), kInt8Group) * filter.dim(1),
                       filter.dim(2), zero};
  if (zero != kInt8Shift) matrix.rest_room = 2 * matrix.groups();
  return matrix;
}

Int8Matrix MakeInt8LinedMatrix(const Shape& filter, int32_t zero) {
  const int64_t line = RoundUp(filter.dim(1) * filter.dim(2), kInt8Group);
  return MakeInt8Matrix(filter.dim(0) * line, filter.dim(3), zero);
}

Int8Weights::Int8Weights(PackedWeights packed, const Int8Matrix& matrix)
    : packed_(std::move(packed)),
      matrix_(matrix),
      padded_depth_(matrix.groups() * kInt8Group),
      blocks_(matrix.blocks()),
      block_bytes_(matrix.block_bytes()) {}

WeightLayout Int8Weights::LayoutOf(const Tensor& codes,
                                   const Int8Matrix& matrix, bool transposed) {
  WeightLayout layout =
      EmptyLayout(absl::StrCat("int8 ", matrix.depth, "x", matrix.columns,
                               transposed ? " transposed" : ""),
                  matrix);
  layout.pack = [matrix, transposed](const Tensor& weights, ThreadPool* pool,
                                     WeightLayout::Done) {
    return Pack(weights, matrix, transposed, pool);
  };
  layout.unpack = [matrix, transposed, dtype = codes.dtype(),
                   shape = codes.shape()](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), matrix)
        .Unpack(dtype, shape, transposed);
  };
  return layout;
}

WeightLayout Int8Weights::LayoutOfDepthwise(const Tensor& codes, int32_t zero) {
  const Shape& shape = codes.shape();
  const Int8Matrix matrix = MakeInt8DepthwiseMatrix(shape, zero);
  WeightLayout layout =
      EmptyLayout(absl::StrCat("int8 depthwise ", shape.ToString()), matrix);
  layout.pack = [shape, zero](const Tensor& weights, ThreadPool* pool,
                              WeightLayout::Done) {
    return PackDepthwise(weights.Reshaped(shape), zero, pool);
  };
  layout.unpack = [matrix, dtype = codes.dtype(), shape](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), matrix)
        .UnpackDepthwise(dtype, shape);
  };
  return layout;
}

WeightLayout Int8Weights::LayoutOfLines(const Tensor& codes, int32_t zero) {
  const Shape& shape = codes.shape();
  const Int8Matrix matrix = MakeInt8LinedMatrix(shape, zero);
  WeightLayout layout =
      EmptyLayout(absl::StrCat("int8 lines ", shape.ToString()), matrix);
  layout.pack = [shape, zero](const Tensor& weights, ThreadPool* pool,
                              WeightLayout::Done) {
    return PackLines(weights.Reshaped(shape), zero, pool);
  };
  layout.unpack = [matrix, dtype = codes.dtype(), shape](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), matrix).UnpackLines(dtype, shape);
  };
  return layout;
}

absl::StatusOr<Tensor> Int8Weights::Pack(const Tensor& codes,
                                         const Int8Matrix& matrix,
                                         bool transposed, ThreadPool* pool) {
  return PackCodes(matrix, transposed, pool,
                   [&](int32_t) -> absl::StatusOr<Tensor> { return codes; });
}

absl::StatusOr<Tensor> Int8Weights::Unpack(DataType dtype, const Shape& shape,
                                           bool transposed) const {
  OPTFARM_ASSIGN_OR_RETURN(Tensor codes, Tensor::Allocate(dtype, shape));
  auto* out = static_cast<uint8_t*>(codes.raw());
  const int32_t taken =
      TakenOff(dtype, zero() == 0 ? matrix_.zero : kInt8Shift);
  // Adds group `from` of a block to rows of group `to`; codes wrap.
  const auto add = [&](int64_t number, int64_t from, int64_t to) {
    const int8_t* group = block(number) + from * kGroupBytes;
    const int64_t last =
        std::min(columns() - number * kInt8Columns, int64_t{kInt8Columns});
    for (int64_t i = 0; i < kInt8Group; ++i) {
      const int64_t k = to * kInt8Group + i;
      for (int64_t c = 0; c < last && k < depth(); ++c) {
        const int64_t column = number * kInt8Columns + c;
        uint8_t& code =
            out[transposed ? column * depth() + k : k * columns() + column];
        code = static_cast<uint8_t>(code + group[c * kInt8Group + i]);
      }
    }
  };
  std::memset(out, taken, static_cast<size_t>(depth() * columns()));
  for (int64_t b = 0; b < blocks_; ++b) {
    for (int64_t g = 0; g < matrix_.groups(); ++g) add(b, g, g);
    int64_t from = matrix_.groups();
    for (int32_t to : rest(b)) add(b, from++, to);
  }
  return codes;
}

absl::StatusOr<Tensor> Int8Weights::PackDepthwise(const Tensor& codes,
                                                  int32_t zero,
                                                  ThreadPool* pool) {
  const Shape& filter = codes.shape();
  const Int8Matrix matrix = MakeInt8DepthwiseMatrix(filter, zero);
  return PackCodes(matrix, false, pool, [&](int32_t taken) {
    return SpreadRows(codes, matrix, taken,
                      [&](int64_t row) { return DepthwiseRow(filter, row); });
  });
}

absl::StatusOr<Tensor> Int8Weights::UnpackDepthwise(DataType dtype,
                                                    const Shape& shape) const {
  return UnpackRows(dtype, shape,
                    [&](int64_t row) { return DepthwiseRow(shape, row); });
}

absl::StatusOr<Tensor> Int8Weights::PackLines(const Tensor& codes, int32_t zero,
                                              ThreadPool* pool) {
  const Shape& filter = codes.shape();
  const Int8Matrix matrix = MakeInt8LinedMatrix(filter, zero);
  return PackCodes(matrix, false, pool, [&](int32_t taken) {
    return SpreadRows(codes, matrix, taken,
                      [&](int64_t row) { return LinedRow(filter, row); });
  });
}

absl::StatusOr<Tensor> Int8Weights::UnpackLines(DataType dtype,
                                                const Shape& shape) const {
  return UnpackRows(dtype, shape,
                    [&](int64_t row) { return LinedRow(shape, row); });
}

absl::StatusOr<Tensor> Int8Weights::UnpackRows(
    DataType dtype, const Shape& shape,
    absl::FunctionRef<int64_t(int64_t)> place) const {
  OPTFARM_ASSIGN_OR_RETURN(const Shape all,
                           Shape::FromDims({depth(), columns()}));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor rows, Unpack(dtype, all, false));
  OPTFARM_ASSIGN_OR_RETURN(Tensor codes, Tensor::Allocate(dtype, shape));
  const auto* in = static_cast<const uint8_t*>(rows.raw());
  auto* out = static_cast<uint8_t*>(codes.raw());
  for (int64_t row = 0; row < codes.num_elements() / columns(); ++row) {
    std::memcpy(out + row * columns(), in + place(row) * columns(),
                static_cast<size_t>(columns()));
  }
  return codes;
}

const int8_t* Int8Weights::block(int64_t number) const {
  return packed_.packed().data<int8_t>() + number * block_bytes_;
}

const int32_t* Int8Weights::sums() const {
  return reinterpret_cast<const int32_t*>(block(blocks_));
}

int32_t Int8Weights::zero() const {
  return matrix_.rest_room == 0 ? 0 : sums()[blocks_ * kInt8Columns];
}

absl::Span<const int32_t> Int8Weights::rest(int64_t block) const {
  if (matrix_.rest_room == 0) return {};
  const int32_t* rest =
      sums() + blocks_ * kInt8Columns + 1 + block * (1 + matrix_.rest_room);
  return {rest + 1, static_cast<size_t>(rest[0])};
}

}  // namespace optfarm::runtime
