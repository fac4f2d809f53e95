// Cast. A number outside of the target's range becomes what
// TensorFlow gives on x86: floats turn into the smallest int32 or int64, and
// narrower integers keep the low bits.

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

template <typename To, typename From>
To Convert(From x) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if constexpr (std::is_same_v<To, uint64_t>) {
      if (x >= From(9223372036854775808.0) &&
          x < From(18446744073709551616.0)) {
        return static_cast<uint64_t>(x);
      }
    }
    constexpr bool kIsInt32 = std::is_same_v<To, int32_t>;
    const From limit =
        kIsInt32 ? From(2147483648.0) : From(9223372036854775808.0);
    const bool fits = x >= -limit && x < limit;
    if (!fits) {
      return static_cast<To>(kIsInt32 ? std::numeric_limits<int32_t>::min()
                                      : std::numeric_limits<int64_t>::min());
    }
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void ConvertAll(const From* in, int64_t count, ThreadPool* pool, To* out) {
  pool->ParallelFor(count, 32 * 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = Convert<To>(in[i]);
  });
}

template <typename From>
absl::Status CastToComplex(const Tensor& in, Tensor* out) {
  return VisitComplex(out->dtype(), "DstT", [&](auto tag) -> absl::Status {
    using To = typename decltype(tag)::type;
    using Real = typename To::value_type;
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      const From x = in.data<From>()[i];
      if constexpr (std::is_arithmetic_v<From>) {
        out->data<To>()[i] = To(static_cast<Real>(x));
      } else {
        out->data<To>()[i] =
            To(static_cast<Real>(x.real()), static_cast<Real>(x.imag()));
      }
    }
    return absl::OkStatus();
  });
}

bool IsComplex(DataType dtype) {
  return dtype == tensorflow::DT_COMPLEX64 ||
         dtype == tensorflow::DT_COMPLEX128;
}

template <typename From>
absl::Status CastFrom(const Tensor& in, ThreadPool* pool, Tensor* out) {
  const From* from = in.data<From>();
  if (out->dtype() == tensorflow::DT_BOOL) {
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      out->data<bool>()[i] = from[i] != From(0);
    }
    return absl::OkStatus();
  }
  if (IsComplex(out->dtype())) return CastToComplex<From>(in, out);
  return VisitNumber(out->dtype(), "DstT", [&](auto tag) -> absl::Status {
    using To = typename decltype(tag)::type;
    ConvertAll(from, in.num_elements(), pool, out->data<To>());
    return absl::OkStatus();
  });
}

// The real part counts, unless the target is complex too.
absl::Status CastComplex(const Tensor& in, ThreadPool* pool, Tensor* out) {
  return VisitComplex(in.dtype(), "x", [&](auto tag) -> absl::Status {
    using From = typename decltype(tag)::type;
    using Real = typename From::value_type;
    if (IsComplex(out->dtype())) return CastToComplex<From>(in, out);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor real, Tensor::Allocate(DataTypeOf<Real>::kValue, in.shape()));
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      real.data<Real>()[i] = in.data<From>()[i].real();
    }
    return CastFrom<Real>(real, pool, out);
  });
}

absl::StatusOr<Tensor> CastTensor(const Tensor& in, DataType to,
                                  ThreadPool* pool) {
  if (in.dtype() == to) return in;
  if (IsHalf(in.dtype())) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor wide, HalfAsFloat(in));
    return CastTensor(wide, to, pool);
  }
  if (IsHalf(to)) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor wide,
                             CastTensor(in, tensorflow::DT_FLOAT, pool));
    return FloatAsHalf(wide, to);
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(to, in.shape()));
  if (IsComplex(in.dtype())) {
    OPTFARM_RETURN_IF_ERROR(CastComplex(in, pool, &out));
    return out;
  }
  if (in.dtype() == tensorflow::DT_BOOL) {
    OPTFARM_RETURN_IF_ERROR(
        CastFrom<uint8_t>(in.Reinterpreted(tensorflow::DT_UINT8), pool, &out));
    return out;
  }
  OPTFARM_RETURN_IF_ERROR(
      VisitNumber(in.dtype(), "x", [&](auto tag) -> absl::Status {
        return CastFrom<typename decltype(tag)::type>(in, pool, &out);
      }));
  return out;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCast(
    const tensorflow::NodeDef& node) {
  for (const char* attr : {"SrcT", "DstT"}) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
        node, attr,
        {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_HALF,
         tensorflow::DT_BFLOAT16, tensorflow::DT_INT8, tensorflow::DT_INT16,
         tensorflow::DT_INT32, tensorflow::DT_INT64, tensorflow::DT_UINT8,
         tensorflow::DT_UINT16, tensorflow::DT_UINT32, tensorflow::DT_UINT64,
         tensorflow::DT_BOOL, tensorflow::DT_COMPLEX64,
         tensorflow::DT_COMPLEX128}));
  }
  OPTFARM_ASSIGN_OR_RETURN(const DataType to, graph::GetType(node, "DstT"));
  return MakeKernel([to](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor out, CastTensor(context->input(0), to, context->pool()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddCastKernels(KernelCatalog* catalog) { catalog->Add("Cast", MakeCast); }

}  // namespace optfarm::runtime
