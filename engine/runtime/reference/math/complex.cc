// Complex numbers: Complex, Real, Imag, Conj, Angle, ComplexAbs, and the
// Fourier transforms over the last one to three dimensions.

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/line_transform.h"

namespace optfarm::runtime {
namespace {

// Along one axis of a dense array of the given sizes.
void TransformAxis(CountedVector<Complex128>* values,
                   const std::vector<int64_t>& sizes, size_t axis,
                   const LineTransform& transform) {
  int64_t inner = 1;
  for (size_t i = axis + 1; i < sizes.size(); ++i) inner *= sizes[i];
  const int64_t size = sizes[axis];
  const int64_t outer =
      static_cast<int64_t>(values->size()) / std::max<int64_t>(1, size * inner);
  CountedVector<Complex128> line(size);
  for (int64_t o = 0; o < outer * inner; ++o) {
    LeaveIfRunEnded();
    const int64_t first = o / inner * size * inner + o % inner;
    for (int64_t k = 0; k < size; ++k) line[k] = (*values)[first + k * inner];
    transform.Run(&line);
    for (int64_t k = 0; k < size; ++k) (*values)[first + k * inner] = line[k];
  }
}

enum class Fourier { kComplex, kRealToComplex, kComplexToReal };

// Sizes of one transform: of what is read, of the transform itself, and of
// what is written, over the transformed dimensions.
struct FourierSizes {
  std::vector<int64_t> in;
  std::vector<int64_t> full;
  std::vector<int64_t> out;
};

int64_t Product(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) product *= size;
  return product;
}

absl::StatusOr<FourierSizes> ReadSizes(const KernelContext& context,
                                       Fourier kind, int dimensions) {
  const Tensor& input = context.input(0);
  if (input.rank() < dimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("'input' must have rank ", dimensions,
                     " or more, but has shape ", input.shape().ToString()));
  }
  FourierSizes sizes;
  const auto last = input.shape().dims().subspan(input.rank() - dimensions);
  sizes.in.assign(last.begin(), last.end());
  sizes.full = sizes.in;
  if (kind != Fourier::kComplex) {
    OPTFARM_ASSIGN_OR_RETURN(sizes.full,
                             ReadIntegers(context.input(1), "fft_length"));
  }
  bool fits = static_cast<int>(sizes.full.size()) == dimensions;
  int64_t product = 1;
  for (int64_t size : sizes.full) {
    fits = fits && size >= 0 && size <= kMaxTransformLength &&
           !__builtin_mul_overflow(product, size, &product) &&
           product <= kMaxTransformLength;
  }
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("fft_length must be ", dimensions, " values from 0 to ",
                     kMaxTransformLength));
  }
  sizes.out = sizes.full;
  if (kind == Fourier::kRealToComplex) {
    sizes.out.back() = sizes.full.back() == 0 ? 0 : sizes.full.back() / 2 + 1;
  }
  return sizes;
}

// `values` in an array of the sizes `from`, cropped or padded with zeros.
CountedVector<Complex128> Resized(const CountedVector<Complex128>& values,
                                  const std::vector<int64_t>& from,
                                  const std::vector<int64_t>& to) {
  if (from == to) return values;
  CountedVector<Complex128> resized(Product(to));
  for (int64_t i = 0; i < static_cast<int64_t>(resized.size()); ++i) {
    int64_t rest = i;
    int64_t at = 0;
    int64_t step = 1;
    bool is_inside = true;
    for (int axis = static_cast<int>(to.size()) - 1; axis >= 0; --axis) {
      const int64_t k = rest % to[axis];
      rest /= to[axis];
      is_inside = is_inside && k < from[axis];
      at += k * step;
      step *= from[axis];
    }
    if (is_inside) resized[i] = values[at];
  }
  return resized;
}

// The half spectrum of a real signal, completed by its symmetry.
CountedVector<Complex128> Completed(const CountedVector<Complex128>& half,
                                    const std::vector<int64_t>& half_sizes,
                                    const std::vector<int64_t>& full) {
  CountedVector<Complex128> values = Resized(half, half_sizes, full);
  const int64_t last = full.back();
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    const int64_t k = i % last;
    if (k <= last / 2) continue;
    // The mirrored place along every axis.
    int64_t rest = i;
    int64_t at = 0;
    int64_t step = 1;
    for (int axis = static_cast<int>(full.size()) - 1; axis >= 0; --axis) {
      at += (full[axis] - rest % full[axis]) % full[axis] * step;
      rest /= full[axis];
      step *= full[axis];
    }
    values[i] = std::conj(values[at]);
  }
  return values;
}

// Along all axes.
class FullTransform {
 public:
  FullTransform(const std::vector<int64_t>& sizes, bool is_inverse)
      : sizes_(sizes), is_inverse_(is_inverse) {
    for (const int64_t size : sizes) {
      axes_.emplace_back(static_cast<size_t>(size), is_inverse ? 1 : -1);
    }
  }

  void Run(CountedVector<Complex128>* values) const {
    for (size_t axis = 0; axis < sizes_.size(); ++axis) {
      TransformAxis(values, sizes_, axis, axes_[axis]);
    }
    if (!is_inverse_) return;
    const double scale = 1.0 / static_cast<double>(values->size());
    for (Complex128& value : *values) value *= scale;
  }

 private:
  const std::vector<int64_t>& sizes_;
  bool is_inverse_;
  std::vector<LineTransform> axes_;
};

template <typename In, typename Out>
void TransformBatch(const Tensor& input, Fourier kind, bool is_inverse,
                    const FourierSizes& sizes, Tensor* out) {
  const int64_t in_size = Product(sizes.in);
  const int64_t out_size = Product(sizes.out);
  if (out_size == 0) return;
  const FullTransform transform(sizes.full, is_inverse);
  for (int64_t n = 0; n < out->num_elements() / out_size; ++n) {
    CountedVector<Complex128> values(in_size);
    for (int64_t i = 0; i < in_size; ++i) {
      values[i] = Complex128(input.data<In>()[n * in_size + i]);
    }
    if (kind == Fourier::kComplexToReal) {
      std::vector<int64_t> half = sizes.full;
      half.back() = half.back() / 2 + 1;
      values = Completed(Resized(values, sizes.in, half), half, sizes.full);
    } else {
      values = Resized(values, sizes.in, sizes.full);
    }
    transform.Run(&values);
    values = Resized(values, sizes.full, sizes.out);
    for (int64_t i = 0; i < out_size; ++i) {
      if constexpr (std::is_floating_point_v<Out>) {
        out->data<Out>()[n * out_size + i] = static_cast<Out>(values[i].real());
      } else {
        out->data<Out>()[n * out_size + i] = static_cast<Out>(values[i]);
      }
    }
  }
}

// Which of the transforms an op is.
struct FourierOp {
  Fourier kind;
  bool is_inverse;
  int dimensions;
};

template <typename In, typename Out>
absl::Status TransformInto(const FourierOp& op, const FourierSizes& sizes,
                           const Shape& shape, KernelContext* context) {
  const Tensor& input = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Zeros(DataTypeOf<Out>::kValue, shape));
  if (input.num_elements() > 0) {
    TransformBatch<In, Out>(input, op.kind, op.is_inverse, sizes, &out);
  }
  context->SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status ComputeFourier(const FourierOp& op, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(
      RequireInputs(*context, op.kind == Fourier::kComplex ? 1 : 2));
  const Tensor& input = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(const FourierSizes sizes,
                           ReadSizes(*context, op.kind, op.dimensions));
  std::vector<int64_t> dims(input.shape().dims().begin(),
                            input.shape().dims().end() - op.dimensions);
  dims.insert(dims.end(), sizes.out.begin(), sizes.out.end());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  if (op.kind == Fourier::kRealToComplex) {
    return VisitFloat(input.dtype(), "input", [&](auto tag) {
      using Real = typename decltype(tag)::type;
      return TransformInto<Real, std::complex<Real>>(op, sizes, shape, context);
    });
  }
  return VisitComplex(input.dtype(), "input", [&](auto tag) {
    using In = typename decltype(tag)::type;
    if (op.kind == Fourier::kComplex) {
      return TransformInto<In, In>(op, sizes, shape, context);
    }
    return TransformInto<In, typename In::value_type>(op, sizes, shape,
                                                      context);
  });
}

template <Fourier kKind, bool kIsInverse, int kDimensions>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFourier(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "Tcomplex", OPTFARM_COMPLEX_TYPES));
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "Treal", OPTFARM_FLOAT_TYPES));
  const FourierOp op = {kKind, kIsInverse, kDimensions};
  return MakeKernel(
      [op](KernelContext* context) { return ComputeFourier(op, context); });
}

struct RealOp {
  template <typename T>
  static T Of(std::complex<T> x) {
    return x.real();
  }
};
struct ImagOp {
  template <typename T>
  static T Of(std::complex<T> x) {
    return x.imag();
  }
};
struct AngleOp {
  template <typename T>
  static T Of(std::complex<T> x) {
    return std::arg(x);
  }
};
struct AbsOp {
  template <typename T>
  static T Of(std::complex<T> x) {
    return std::abs(x);
  }
};
struct ConjOp {
  template <typename T>
  static std::complex<T> Of(std::complex<T> x) {
    return std::conj(x);
  }
};

// A function of each complex element, whose result may be real.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakePart(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_COMPLEX_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    return VisitComplex(x.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      using Out = decltype(Op::Of(T()));
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out,
          context->AllocateOutput(0, DataTypeOf<Out>::kValue, x.shape()));
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        out->data<Out>()[i] = Op::Of(x.data<T>()[i]);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeComplex(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& a = context->input(0);
    const Tensor& b = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(a, b));
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                             PlanBroadcast(a.shape(), b.shape()));
    return VisitFloat(a.dtype(), "real", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      using Out = std::complex<T>;
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out,
          context->AllocateOutput(0, DataTypeOf<Out>::kValue, plan.output));
      plan.ForEachElement([&](int64_t in_a, int64_t in_b, int64_t at) {
        out->data<Out>()[at] = Out(a.data<T>()[in_a], b.data<T>()[in_b]);
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddComplexKernels(KernelCatalog* catalog) {
  catalog->Add("Complex", MakeComplex);
  catalog->Add("Real", MakePart<RealOp>);
  catalog->Add("Imag", MakePart<ImagOp>);
  catalog->Add("Angle", MakePart<AngleOp>);
  catalog->Add("ComplexAbs", MakePart<AbsOp>);
  catalog->Add("Conj", MakePart<ConjOp>);
  catalog->Add("FFT", MakeFourier<Fourier::kComplex, false, 1>);
  catalog->Add("FFT2D", MakeFourier<Fourier::kComplex, false, 2>);
  catalog->Add("FFT3D", MakeFourier<Fourier::kComplex, false, 3>);
  catalog->Add("IFFT", MakeFourier<Fourier::kComplex, true, 1>);
  catalog->Add("IFFT2D", MakeFourier<Fourier::kComplex, true, 2>);
  catalog->Add("IFFT3D", MakeFourier<Fourier::kComplex, true, 3>);
  catalog->Add("RFFT", MakeFourier<Fourier::kRealToComplex, false, 1>);
  catalog->Add("RFFT2D", MakeFourier<Fourier::kRealToComplex, false, 2>);
  catalog->Add("RFFT3D", MakeFourier<Fourier::kRealToComplex, false, 3>);
  catalog->Add("IRFFT", MakeFourier<Fourier::kComplexToReal, true, 1>);
  catalog->Add("IRFFT2D", MakeFourier<Fourier::kComplexToReal, true, 2>);
  catalog->Add("IRFFT3D", MakeFourier<Fourier::kComplexToReal, true, 3>);
}

}  // namespace optfarm::runtime
