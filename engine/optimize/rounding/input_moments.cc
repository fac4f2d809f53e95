#include "engine/optimize/rounding/input_moments.h"

#include <Eigen/Core>
#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;
// A window in each row.
using Rows =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Which of `count` places row `i` of `rows` is taken from.
int64_t PlaceOf(int64_t i, int64_t rows, int64_t count, int64_t phase) {
  return i * count / rows + phase % (count / rows);
}

Rows MatrixRows(const Tensor& values, int zero, int64_t wanted, int64_t phase) {
  const int64_t columns = values.dim(1);
  const int64_t rows = std::min(wanted, values.dim(0));
  Rows result(rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    const uint8_t* const from =
        values.data<uint8_t>() +
        PlaceOf(i, rows, values.dim(0), phase) * columns;
    for (int64_t c = 0; c < columns; ++c) {
      result(i, c) = static_cast<float>(from[c] - zero);
    }
  }
  return result;
}

// Writes the window at (y, x) of a picture; what lies outside is zero.
void CopyWindow(const uint8_t* picture, int zero, const WindowShape& shape,
                const runtime::Window& window, int64_t y, int64_t x,
                float* row) {
  const bool by_channel = shape.kind == WindowShape::Kind::kDepthwise;
  const int64_t cells = shape.size_y * shape.size_x;
  for (int64_t cell = 0; cell < cells; ++cell) {
    const int64_t at_y = y * window.y.stride - window.y.pad_before +
                         cell / shape.size_x * window.y.dilation;
    const int64_t at_x = x * window.x.stride - window.x.pad_before +
                         cell % shape.size_x * window.x.dilation;
    if (at_y < 0 || at_y >= window.y.in || at_x < 0 || at_x >= window.x.in) {
      continue;
    }
    const uint8_t* const from =
        picture + (at_y * window.x.in + at_x) * shape.channels;
    for (int64_t c = 0; c < shape.channels; ++c) {
      row[by_channel ? c * cells + cell : cell * shape.channels + c] =
          static_cast<float>(from[c] - zero);
    }
  }
}

absl::StatusOr<Rows> WindowRows(const Tensor& values, int zero,
                                const WindowShape& shape, int64_t wanted,
                                int64_t phase) {
  OPTFARM_ASSIGN_OR_RETURN(
      const runtime::Window window,
      runtime::PlaceWindow(shape.attrs, values.dim(1), values.dim(2),
                           shape.size_y, shape.size_x));
  const int64_t positions = window.y.out * window.x.out;
  const int64_t count = values.dim(0) * positions;
  const int64_t rows = std::min(wanted, count);
  Rows result = Rows::Zero(rows, static_cast<Eigen::Index>(shape.columns()));
  const int64_t pixels = window.y.in * window.x.in * shape.channels;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t place = PlaceOf(i, rows, count, phase);
    const int64_t position = place % positions;
    CopyWindow(values.data<uint8_t>() + place / positions * pixels, zero, shape,
               window, position / window.x.out, position % window.x.out,
               result.row(i).data());
  }
  return result;
}

bool Fits(const Tensor& values, const WindowShape& shape) {
  const int rank = shape.kind == WindowShape::Kind::kMatrix ? 2 : 4;
  return values.dtype() == tensorflow::DT_QUINT8 && values.rank() == rank &&
         values.dim(rank - 1) == shape.channels && values.num_elements() > 0;
}

}  // namespace

QuadraticForm InputMoments::Centered(size_t index) const {
  QuadraticForm form = products[index];
  if (rows == 0) return form;
  const double* const sum = &sums[index * block];
  for (size_t i = 0; i < form.size; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      form.values[i * form.size + j] -=
          sum[i] * sum[j] / static_cast<double>(rows);
    }
  }
  return form;
}

void InputMoments::Add(const InputMoments& other) {
  rows += other.rows;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums[i];
  for (size_t b = 0; b < products.size(); ++b) {
    for (size_t i = 0; i < products[b].values.size(); ++i) {
      products[b].values[i] += other.products[b].values[i];
    }
  }
}

InputMoments MakeMoments(size_t columns, size_t block) {
  InputMoments moments;
  moments.block = block;
  moments.sums.resize(columns, 0.0);
  for (size_t at = 0; at < columns; at += block) {
    QuadraticForm& form = moments.products.emplace_back();
    form.size = std::min(block, columns - at);
    form.values.resize(form.size * form.size, 0.0);
  }
  return moments;
}

int64_t MomentBytes(size_t columns, size_t block) {
  return static_cast<int64_t>(columns * (block + 1) * sizeof(double));
}

absl::Status AddWindows(const Tensor& values, int zero,
                        const WindowShape& shape, int64_t rows, int64_t phase,
                        InputMoments* moments) {
  if (!Fits(values, shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("quantized values of shape ", values.shape().ToString(),
                     " are not what the layer's weights multiply"));
  }
  Rows windows;
  if (shape.kind == WindowShape::Kind::kMatrix) {
    windows = MatrixRows(values, zero, rows, phase);
  } else {
    OPTFARM_ASSIGN_OR_RETURN(windows,
                             WindowRows(values, zero, shape, rows, phase));
  }
  moments->rows += windows.rows();
  for (Eigen::Index c = 0; c < windows.cols(); ++c) {
    moments->sums[static_cast<size_t>(c)] += windows.col(c).sum();
  }
  for (size_t b = 0; b < moments->products.size(); ++b) {
    QuadraticForm& form = moments->products[b];
    const auto n = static_cast<Eigen::Index>(form.size);
    const auto part =
        windows.middleCols(static_cast<Eigen::Index>(b * moments->block), n);
    Rows products = Rows::Zero(n, n);
    products.selfadjointView<Eigen::Lower>().rankUpdate(part.transpose());
    Eigen::Map<
        Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        form.values.data(), n, n) += products.cast<double>();
  }
  return absl::OkStatus();
}

}  // namespace optfarm::optimize
