// Fourier transforms of real signals, and the complex numbers they give. ONNX
// has no complex tensors that its runtimes compute with: here they are floats
// with one more axis at the end, the real and the imaginary part. A transform
// is a matrix product, which is exact to a float's last digits in all runtimes;
// their own DFT is not.

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

// UNITS: elements. The matrix of a longer transform would be too large.
constexpr int64_t kLongest = 2048;

// Real and imaginary part of the k-th of `count` roots of one.
float RootPart(int64_t k, int64_t count, bool is_imaginary) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % count) /
                       static_cast<double>(count);
  return static_cast<float>(is_imaginary ? std::sin(angle) : std::cos(angle));
}

// x [..., length] as [..., length / 2 + 1, 2].
ValueId TransformReal(NodeRaiser& n, ValueId x, std::vector<int64_t> dims) {
  const int64_t length = dims.back();
  const int64_t bins = length / 2 + 1;
  std::vector<float> matrix;
  matrix.reserve(static_cast<size_t>(length * bins * 2));
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t k = 0; k < bins; ++k) {
      matrix.push_back(RootPart(t * k, length, false));
      matrix.push_back(RootPart(t * k, length, true));
    }
  }
  const ValueId product = n.Emit(
      "MatMul",
      {x, n.Reshape(n.graph().AddFloats(matrix, absl::StrCat(n.name(), "/dft")),
                    {length, 2 * bins})});
  dims.back() = bins;
  dims.push_back(2);
  return n.Reshape(product, dims);
}

// x [..., rows, bins, 2], transformed along its rows.
ValueId TransformRows(NodeRaiser& n, ValueId x, std::vector<int64_t> dims) {
  const int64_t bins = dims.back() / 2 + 1;
  const int64_t rows = dims[dims.size() - 2];
  // From the parts of each row to the parts of each frequency:
  // (a + ib)(c + is) = ac - bs + i(as + bc).
  std::vector<float> matrix;
  for (int64_t t = 0; t < rows; ++t) {
    for (const bool is_imaginary : {false, true}) {
      for (int64_t k = 0; k < rows; ++k) {
        const float c = RootPart(t * k, rows, false);
        const float s = RootPart(t * k, rows, true);
        matrix.push_back(is_imaginary ? -s : c);
        matrix.push_back(is_imaginary ? c : s);
      }
    }
  }
  std::vector<int64_t> perm;
  for (size_t i = 0; i + 2 < dims.size(); ++i) {
    perm.push_back(static_cast<int64_t>(i));
  }
  const auto at = static_cast<int64_t>(perm.size());
  perm.insert(perm.end(), {at + 1, at, at + 2});
  std::vector<int64_t> turned(dims.begin(), dims.end() - 2);
  turned.insert(turned.end(), {bins, 2 * rows});
  const ValueId parts = n.Reshape(n.Transpose(x, perm), turned);
  const ValueId product = n.Emit(
      "MatMul", {parts, n.Reshape(n.graph().AddFloats(
                                      matrix, absl::StrCat(n.name(), "/rows")),
                                  {2 * rows, 2 * rows})});
  turned.back() = rows;
  turned.push_back(2);
  return n.Transpose(n.Reshape(product, turned), perm);
}

// The last axes as long as the transform is: cut off, or filled up with zeros.
ValueId Fitted(NodeRaiser& n, ValueId x, const std::vector<int64_t>& dims,
               const std::vector<int64_t>& lengths) {
  const size_t first = dims.size() - lengths.size();
  std::vector<int64_t> ends, axes, pads(2 * dims.size(), 0);
  bool pads_any = false;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t more = lengths[i] - dims[first + i];
    if (more < 0) {
      ends.push_back(lengths[i]);
      axes.push_back(static_cast<int64_t>(first + i));
    } else if (more > 0) {
      pads[dims.size() + first + i] = more;
      pads_any = true;
    }
  }
  if (!axes.empty()) {
    const std::vector<int64_t> starts(axes.size(), 0);
    x = n.Emit("Slice", {x, n.Ints(starts), n.Ints(ends), n.Ints(axes)});
  }
  return pads_any ? n.Emit("Pad", {x, n.Ints(pads)}) : x;
}

absl::Status Fourier(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                           n.Integers(1, "the length of the transform"));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  const size_t wanted = n.node().op() == "RFFT" ? 1 : 2;
  if (n.InType(0) != tensorflow::DT_FLOAT || lengths.size() != wanted ||
      static_cast<size_t>(rank) < wanted || !n.InShape(0).is_static()) {
    return absl::UnimplementedError(
        "transforms are written for floats of known sizes");
  }
  std::vector<int64_t> dims(n.InShape(0).dims().begin(),
                            n.InShape(0).dims().end());
  for (const int64_t length : lengths) {
    if (length < 1 || length > kLongest) {
      return absl::UnimplementedError(
          absl::StrCat("transforms of 1 to ", kLongest,
                       " elements are written, this one has ", length));
    }
  }
  const ValueId fitted = Fitted(n, n.In(0), dims, lengths);
  std::copy(lengths.begin(), lengths.end(),
            dims.end() - static_cast<ptrdiff_t>(lengths.size()));
  ValueId bins = TransformReal(n, fitted, dims);
  if (wanted == 2 && lengths[0] > 1) bins = TransformRows(n, bins, dims);
  n.Set(bins);
  return absl::OkStatus();
}

// One of the two parts.
absl::Status Part(NodeRaiser& n) {
  const int64_t which = n.node().op() == "Imag" ? 1 : 0;
  n.Set(n.Emit("Gather", {n.In(0), n.Number(tensorflow::DT_INT64, which)},
               {{"axis", int64_t{-1}}}));
  return absl::OkStatus();
}

absl::Status Magnitude(NodeRaiser& n) {
  n.Set(n.Reduce("ReduceL2", n.In(0), {-1}, false));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"RFFT", Fourier},
    {"RFFT2D", Fourier},
    {.op = "ComplexAbs", .raise = Magnitude, .takes_complex = true},
    {.op = "Real", .raise = Part, .takes_complex = true},
    {.op = "Imag", .raise = Part, .takes_complex = true},
};

}  // namespace

absl::Span<const RaisingRow> SignalRaisings() { return kRows; }

}  // namespace optfarm::formats
