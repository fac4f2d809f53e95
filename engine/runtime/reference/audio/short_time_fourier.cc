// Fourier transforms as ONNX has them, of real and of complex numbers whose
// parts stand side by side in the last dimension: Dft along any axis, Stft over
// overlapping frames; and the weights of mel bands.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/line_transform.h"

namespace optfarm::runtime {
namespace {

struct DftAttributes {
  bool inverse = false;
  bool onesided = false;
};

// Sizes along the axis: of the input, the transform and the output.
struct DftSizes {
  int axis = 0;
  // Parts of a number: 1 real, 2 complex.
  int64_t in_parts = 1;
  int64_t out_parts = 2;
  int64_t in = 0;
  int64_t length = 0;
  int64_t out = 0;
};

absl::Status CheckLength(int64_t length) {
  if (length >= 1 && length <= kMaxTransformLength) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a transform of ", length, " elements is not possible; ",
                   "1 to ", kMaxTransformLength, " are"));
}

absl::StatusOr<DftSizes> ReadDftSizes(const DftAttributes& attributes,
                                      const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.rank() < 2 || x.dim(x.rank() - 1) < 1 || x.dim(x.rank() - 1) > 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'x' must hold numbers of 1 or 2 parts in its last dimension, but has "
        "shape ",
        x.shape().ToString()));
  }
  DftSizes sizes;
  OPTFARM_ASSIGN_OR_RETURN(sizes.axis,
                           ReadAxis(context.input(2), "axis", x.rank()));
  if (sizes.axis == x.rank() - 1) {
    return absl::InvalidArgumentError("the last dimension holds the parts");
  }
  sizes.in_parts = x.dim(x.rank() - 1);
  sizes.in = x.dim(sizes.axis);
  // The half of a spectrum that a real signal has, back into that signal.
  const bool to_real = attributes.inverse && attributes.onesided;
  sizes.length = to_real ? 2 * (sizes.in - 1) : sizes.in;
  if (context.input(1).num_elements() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(sizes.length,
                             ReadInteger(context.input(1), "length"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckLength(sizes.length));
  sizes.out = attributes.onesided && !attributes.inverse ? sizes.length / 2 + 1
                                                         : sizes.length;
  if (to_real) sizes.out_parts = 1;
  return sizes;
}

// One line of the input, cut or padded to the length of the transform.
template <typename T>
void ReadLine(const T* x, int64_t stride, const DftSizes& sizes, bool to_real,
              CountedVector<Complex128>* line) {
  std::fill(line->begin(), line->end(), Complex128());
  const int64_t count =
      std::min(sizes.in, to_real ? sizes.length / 2 + 1 : sizes.length);
  for (int64_t k = 0; k < count; ++k) {
    const T* at = x + k * stride;
    (*line)[k] = {static_cast<double>(at[0]),
                  sizes.in_parts == 2 ? static_cast<double>(at[1]) : 0.0};
    if (to_real && k > 0) {
      (*line)[sizes.length - k] = std::conj((*line)[k]);
    }
  }
}

template <typename T>
void TransformLines(const DftAttributes& attributes, const DftSizes& sizes,
                    const Tensor& x, Tensor* out) {
  const LineTransform transform(sizes.length, attributes.inverse ? 1 : -1);
  const double scale =
      attributes.inverse ? 1.0 / static_cast<double>(sizes.length) : 1.0;
  const int64_t inner = DimProduct(x.shape(), sizes.axis + 1, x.rank() - 1);
  const int64_t outer = DimProduct(x.shape(), 0, sizes.axis);
  const bool to_real = attributes.inverse && attributes.onesided;
  CountedVector<Complex128> line(sizes.length);
  for (int64_t i = 0; i < outer * inner; ++i) {
    LeaveIfRunEnded();
    const int64_t from = i / inner * sizes.in * inner + i % inner;
    ReadLine(x.data<T>() + from * sizes.in_parts, inner * sizes.in_parts, sizes,
             to_real, &line);
    transform.Run(&line);
    const int64_t to = i / inner * sizes.out * inner + i % inner;
    for (int64_t k = 0; k < sizes.out; ++k) {
      T* at = out->data<T>() + (to + k * inner) * sizes.out_parts;
      at[0] = static_cast<T>(line[k].real() * scale);
      if (sizes.out_parts == 2) at[1] = static_cast<T>(line[k].imag() * scale);
    }
  }
}

absl::Status ComputeDft(const DftAttributes& attributes,
                        KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
  const Tensor& x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const DftSizes sizes,
                           ReadDftSizes(attributes, *context));
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  dims[sizes.axis] = sizes.out;
  dims.back() = sizes.out_parts;
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, x.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
    TransformLines<typename decltype(tag)::type>(attributes, sizes, x, out);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDft(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  DftAttributes attributes;
  OPTFARM_ASSIGN_OR_RETURN(attributes.inverse,
                           graph::GetBoolOr(node, "inverse", false));
  OPTFARM_ASSIGN_OR_RETURN(attributes.onesided,
                           graph::GetBoolOr(node, "onesided", false));
  return MakeKernel([attributes](KernelContext* context) {
    return ComputeDft(attributes, context);
  });
}

// Frames of a signal [batch, length(, parts)].
struct StftSizes {
  int64_t step = 1;
  int64_t frame = 0;
  int64_t frames = 0;
  int64_t bins = 0;
  int64_t parts = 1;
};

absl::StatusOr<StftSizes> ReadStftSizes(bool onesided,
                                        const KernelContext& context) {
  const Tensor& signal = context.input(0);
  const Tensor& window = context.input(2);
  StftSizes sizes;
  if (signal.rank() == 3) sizes.parts = signal.dim(2);
  if (signal.rank() < 2 || signal.rank() > 3 || sizes.parts < 1 ||
      sizes.parts > 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'signal' must have shape [batch, length] or [batch, length, 1 or 2], "
        "but has shape ",
        signal.shape().ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(sizes.step,
                           ReadInteger(context.input(1), "frame_step"));
  sizes.frame = window.num_elements();
  if (context.input(3).num_elements() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(sizes.frame,
                             ReadInteger(context.input(3), "frame_length"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckLength(sizes.frame));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(signal, window));
  if (window.num_elements() != 0) {
    OPTFARM_RETURN_IF_ERROR(RequireShape(window, "window", {sizes.frame}));
  }
  if (sizes.step < 1 || signal.dim(1) < sizes.frame) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a signal of ", signal.dim(1), " elements has no frames of ",
        sizes.frame, " in steps of ", sizes.step));
  }
  sizes.frames = 1 + (signal.dim(1) - sizes.frame) / sizes.step;
  sizes.bins = onesided ? sizes.frame / 2 + 1 : sizes.frame;
  return sizes;
}

template <typename T>
void TransformFrames(const StftSizes& sizes, const Tensor& signal,
                     const Tensor& window, T* to) {
  const LineTransform transform(sizes.frame, -1);
  CountedVector<Complex128> line(sizes.frame);
  for (int64_t i = 0; i < signal.dim(0) * sizes.frames; ++i) {
    LeaveIfRunEnded();
    const int64_t first =
        i / sizes.frames * signal.dim(1) + i % sizes.frames * sizes.step;
    const T* from = signal.data<T>() + first * sizes.parts;
    for (int64_t k = 0; k < sizes.frame; ++k) {
      const double by = window.num_elements() == 0
                            ? 1.0
                            : static_cast<double>(window.data<T>()[k]);
      const T* at = from + k * sizes.parts;
      line[k] = {by * static_cast<double>(at[0]),
                 sizes.parts == 2 ? by * static_cast<double>(at[1]) : 0.0};
    }
    transform.Run(&line);
    for (int64_t k = 0; k < sizes.bins; ++k) {
      *to++ = static_cast<T>(line[k].real());
      *to++ = static_cast<T>(line[k].imag());
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStft(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool onesided,
                           graph::GetBoolOr(node, "onesided", true));
  return MakeKernel([onesided](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    const Tensor& signal = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const StftSizes sizes,
                             ReadStftSizes(onesided, *context));
    const int64_t dims[] = {signal.dim(0), sizes.frames, sizes.bins, 2};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, signal.dtype(), shape));
    return VisitFloat(signal.dtype(), "signal", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      TransformFrames<T>(sizes, signal, context->input(2), out->data<T>());
      return absl::OkStatus();
    });
  });
}

// The frequency bin at each edge of the bands: equal steps on the mel scale.
absl::StatusOr<std::vector<int64_t>> BandEdges(int64_t bands, int64_t length,
                                               double rate, double low,
                                               double high) {
  const auto mel_of = [](double hertz) {
    return 2595.0 * std::log10(1.0 + hertz / 700.0);
  };
  const double start = mel_of(low);
  const double step = (mel_of(high) - start) / static_cast<double>(bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double mel = start + step * static_cast<double>(i);
    const double hertz = 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
    const double bin =
        std::floor(static_cast<double>(length + 1) * hertz / rate);
    if (!(bin >= 0.0 && bin <= static_cast<double>(length / 2))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the band edge at ", hertz, " Hz is not in a spectrum of ", length,
          " samples at ", rate, " Hz"));
    }
    edges.push_back(static_cast<int64_t>(bin));
  }
  return edges;
}

// Triangles: each band rises from one edge to the next and falls to the third.
template <typename T>
void FillBands(const std::vector<int64_t>& edges, int64_t bands, T* out) {
  for (int64_t b = 0; b < bands; ++b) {
    const int64_t low = edges[b];
    const int64_t center = edges[b + 1];
    const int64_t high = edges[b + 2];
    if (low == center) out[center * bands + b] = T(1);
    for (int64_t i = low; low < center && i <= center; ++i) {
      out[i * bands + b] = static_cast<T>(static_cast<double>(i - low) /
                                          static_cast<double>(center - low));
    }
    for (int64_t i = center; i < high; ++i) {
      out[i * bands + b] = static_cast<T>(static_cast<double>(high - i) /
                                          static_cast<double>(high - center));
    }
  }
}

absl::Status ComputeMelWeights(DataType dtype, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 5));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bands,
                           ReadInteger(context->input(0), "num_mel_bins"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t length,
                           ReadInteger(context->input(1), "dft_length"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t rate,
                           ReadInteger(context->input(2), "sample_rate"));
  OPTFARM_RETURN_IF_ERROR(CheckLength(length));
  if (bands < 1 || bands > 65536 || rate < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(bands, " mel bands at ", rate, " Hz are not possible"));
  }
  double hertz[2] = {};
  for (int i : {0, 1}) {
    const char* name = i == 0 ? "lower_edge_hertz" : "upper_edge_hertz";
    const Tensor& edge = context->input(3 + i);
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(edge, name));
    OPTFARM_RETURN_IF_ERROR(RequireDtype(edge, name, tensorflow::DT_FLOAT));
    hertz[i] = static_cast<double>(edge.data<float>()[0]);
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> edges,
      BandEdges(bands, length, static_cast<double>(rate), hertz[0], hertz[1]));
  const int64_t dims[] = {length / 2 + 1, bands};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(dtype, shape));
  OPTFARM_RETURN_IF_ERROR(
      VisitFloat(dtype, "weights", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        FillBands(edges, bands, out.data<T>());
        return absl::OkStatus();
      }));
  context->SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMelWeights(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "dtype", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "dtype", tensorflow::DT_FLOAT));
  return MakeKernel([dtype](KernelContext* context) {
    return ComputeMelWeights(dtype, context);
  });
}

}  // namespace

void AddShortTimeFourierKernels(KernelCatalog* catalog) {
  catalog->Add("Dft", MakeDft);
  catalog->Add("MelWeightMatrix", MakeMelWeights);
  catalog->Add("Stft", MakeStft);
}

}  // namespace optfarm::runtime
