// Sound and regions of images: Fourier transforms and their windows, sampling
// at positions, boxes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

constexpr DataType kInt64 = tensorflow::DT_INT64;

// --- Sound -------------------------------------------------------------------

absl::Status LowerDft(NodeLowering& n) {
  GraphBuilder& builder = n.builder();
  Endpoint axis;
  if (n.opset() < 20) {
    axis = builder.Scalar(kInt64, static_cast<double>(n.Int("axis", 1)));
  } else {
    axis = n.has_input(2) ? AsScalar(n, n.Cast(n.input(2), kInt64))
                          : builder.Scalar(kInt64, -2);
  }
  n.SetOutput(0, n.Add("Dft", {n.input(0), InputOrEmpty(n, 1, kInt64), axis},
                       {{"inverse", n.Int("inverse", 0) != 0},
                        {"onesided", n.Int("onesided", 0) != 0}}));
  return absl::OkStatus();
}

absl::Status LowerStft(NodeLowering& n) {
  const Endpoint signal = n.input(0);
  n.SetOutput(0, n.Add("Stft",
                       {signal, AsScalar(n, n.Cast(n.input(1), kInt64)),
                        InputOrEmpty(n, 2, n.dtype(signal)),
                        InputOrEmpty(n, 3, kInt64)},
                       {{"onesided", n.Int("onesided", 1) != 0}}));
  return absl::OkStatus();
}

// A sum of cosines over the window: c[0] - c[1] cos(t) + c[2] cos(2 t).
template <int kWindow>
absl::Status LowerWindow(NodeLowering& n) {
  static constexpr double kCosines[][3] = {
      {0.5, 0.5, 0.0}, {25.0 / 46.0, 21.0 / 46.0, 0.0}, {0.42, 0.5, 0.08}};
  constexpr double kTurn = 6.283185307179586477;
  const double* c = kCosines[kWindow];
  OPTFARM_ASSIGN_OR_RETURN(const DataType type,
                           ElementTypeAttr(n, "output_datatype", 1));
  const Endpoint size = AsScalar(n, n.Cast(n.input(0), tensorflow::DT_DOUBLE));
  const auto number = [&](double value) { return n.ScalarLike(size, value); };
  const bool is_periodic = n.Int("periodic", 1) != 0;
  const Endpoint period = is_periodic ? size : n.Add("Sub", {size, number(1)});
  const Endpoint at = n.Add("Range", {number(0), size, number(1)});
  const Endpoint angle =
      n.Add("RealDiv", {n.Add("Mul", {at, number(kTurn)}), period});
  Endpoint y = n.Add(
      "Sub",
      {number(c[0]), n.Add("Mul", {n.Add("Cos", {angle}), number(c[1])})});
  if (c[2] != 0.0) {
    const Endpoint twice = n.Add("Cos", {n.Add("Mul", {angle, number(2)})});
    y = n.Add("Add", {y, n.Add("Mul", {twice, number(c[2])})});
  }
  n.SetOutput(0, n.Cast(y, type));
  return absl::OkStatus();
}

absl::Status LowerMelWeightMatrix(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType type,
                           ElementTypeAttr(n, "output_datatype", 1));
  const bool is_float = IsFloatingType(type);
  std::vector<Endpoint> inputs;
  for (int i = 0; i < 5; ++i) {
    inputs.push_back(
        AsScalar(n, n.Cast(n.input(i), i < 3 ? kInt64 : tensorflow::DT_FLOAT)));
  }
  const Endpoint y = n.Add("MelWeightMatrix", inputs,
                           {{"dtype", is_float ? type : tensorflow::DT_FLOAT}});
  n.SetOutput(0, n.Cast(y, type));
  return absl::OkStatus();
}

// --- Images ------------------------------------------------------------------

absl::Status LowerRoiAlign(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const bool half_pixel =
      n.opset() >= 16 &&
      n.String("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  n.SetOutput(
      0, n.Add("RoiAlign",
               {x, n.Cast(n.input(1), n.dtype(x)), n.Cast(n.input(2), kInt64)},
               {{"mode", n.String("mode", "avg")},
                {"half_pixel", half_pixel},
                {"output_height", n.Int("output_height", 1)},
                {"output_width", n.Int("output_width", 1)},
                {"sampling_ratio", n.Int("sampling_ratio", 0)},
                {"spatial_scale", n.Float("spatial_scale", 1)}}));
  return absl::OkStatus();
}

absl::Status LowerNonMaxSuppression(NodeLowering& n) {
  GraphBuilder& builder = n.builder();
  const auto scalar = [&](int i, DataType type, double absent) {
    return n.has_input(i) ? AsScalar(n, n.Cast(n.input(i), type))
                          : builder.Scalar(type, absent);
  };
  const DataType type = tensorflow::DT_FLOAT;
  n.SetOutput(0,
              n.Add("MultiClassNonMaxSuppression",
                    {n.Cast(n.input(0), type), n.Cast(n.input(1), type),
                     scalar(2, kInt64, 0), scalar(3, type, 0),
                     scalar(4, type, -std::numeric_limits<double>::infinity())},
                    {{"centered", n.Int("center_point_box", 0) != 0}}));
  return absl::OkStatus();
}

absl::Status LowerCol2Im(NodeLowering& n) {
  n.SetOutput(0, n.Add("Col2Im",
                       {n.input(0), n.Cast(n.input(1), kInt64),
                        n.Cast(n.input(2), kInt64)},
                       {{"strides", n.Ints("strides")},
                        {"dilations", n.Ints("dilations")},
                        {"pads", n.Ints("pads")}}));
  return absl::OkStatus();
}

// Pads that keep the size but for the strides; the rest goes to one end.
absl::StatusOr<std::vector<int64_t>> SamePads(
    NodeLowering& n, const std::vector<int64_t>& kernel, bool is_upper) {
  const PartialShape& shape = n.shape(n.input(0));
  const std::vector<int64_t> strides = n.Ints("strides");
  const std::vector<int64_t> dilations = n.Ints("dilations");
  const size_t spatial = kernel.size();
  std::vector<int64_t> pads(2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t size =
        shape.has_rank() && shape.rank() == static_cast<int>(spatial) + 2
            ? shape.dim(static_cast<int>(i) + 2)
            : graph::kUnknownDim;
    const int64_t stride = i < strides.size() ? strides[i] : 1;
    const int64_t dilation = i < dilations.size() ? dilations[i] : 1;
    if (size < 0 || stride < 1) {
      return absl::UnimplementedError(
          "auto_pad of an image whose size is known only at run time");
    }
    const int64_t count = (size + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(
        0, (count - 1) * stride + (kernel[i] - 1) * dilation + 1 - size);
    pads[i] = is_upper ? total / 2 : total - total / 2;
    pads[spatial + i] = total - pads[i];
  }
  return pads;
}

absl::Status LowerLpPool(NodeLowering& n) {
  const std::vector<int64_t> kernel = n.Ints("kernel_shape");
  const std::string auto_pad = n.String("auto_pad", "NOTSET");
  std::vector<int64_t> pads = n.Ints("pads");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    OPTFARM_ASSIGN_OR_RETURN(pads,
                             SamePads(n, kernel, auto_pad == "SAME_UPPER"));
  }
  n.SetOutput(0, n.Add("LpPool", {n.input(0)},
                       {{"kernel_shape", kernel},
                        {"strides", n.Ints("strides")},
                        {"dilations", n.Ints("dilations")},
                        {"pads", pads},
                        {"p", n.Int("p", 2)},
                        {"ceil_mode", n.Int("ceil_mode", 0) != 0}}));
  return absl::OkStatus();
}

absl::Status LowerGlobalLpPool(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  std::vector<int64_t> axes;
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  const double p = static_cast<double>(n.Int("p", 2));
  const Endpoint powers = n.Add("Pow", {n.Add("Abs", {x}), n.ScalarLike(x, p)});
  const Endpoint sum =
      n.Add("Sum", {powers, n.Int32s(axes)}, {{"keep_dims", true}});
  n.SetOutput(0, n.Add("Pow", {sum, n.ScalarLike(x, 1.0 / p)}));
  return absl::OkStatus();
}

absl::Status LowerDet(NodeLowering& n) {
  n.SetOutput(0, n.Add("MatrixDeterminant", {n.input(0)}));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"BlackmanWindow", LowerWindow<2>},
    {"Col2Im", LowerCol2Im},
    {"DFT", LowerDft},
    {"Det", LowerDet},
    {"GlobalLpPool", LowerGlobalLpPool},
    {"HammingWindow", LowerWindow<1>},
    {"HannWindow", LowerWindow<0>},
    {"LpPool", LowerLpPool},
    {"MelWeightMatrix", LowerMelWeightMatrix},
    {"NonMaxSuppression", LowerNonMaxSuppression},
    {"RoiAlign", LowerRoiAlign},
    {"STFT", LowerStft},
};

}  // namespace

absl::Span<const LoweringRow> SignalLowerings() { return kRows; }

}  // namespace optfarm::formats
