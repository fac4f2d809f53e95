// Ops on the bits of integers: and, or, xor, not, shifts, population count,
// and CompareAndBitpack.

#include <bit>
#include <climits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/binary_loop.h"

namespace optfarm::runtime {
namespace {

struct AndOp {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct OrOp {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct XorOp {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// A shift by less than 0 counts as 0, one by the width or more as width - 1.
template <typename T>
int ClampedShift(T by) {
  constexpr int kWidth = static_cast<int>(sizeof(T)) * CHAR_BIT;
  if constexpr (std::is_signed_v<T>) {
    if (by < T(0)) return 0;
  }
  return by >= T(kWidth) ? kWidth - 1 : static_cast<int>(by);
}
struct LeftShiftOp {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) << ClampedShift(b));
  }
};
struct RightShiftOp {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a >> ClampedShift(b));
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBitwise(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INTEGER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    return ComputeBroadcast(context, ChooseIntegerRow<Op>);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInvert(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INTEGER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                               0, 0, x.dtype(), x.shape()));
    return VisitInteger(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        out->data<T>()[i] = static_cast<T>(~x.data<T>()[i]);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePopulationCount(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INTEGER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_UINT8, x.shape()));
    return VisitInteger(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        out->data<uint8_t>()[i] = static_cast<uint8_t>(std::popcount(
            static_cast<std::make_unsigned_t<T>>(x.data<T>()[i])));
      }
      return absl::OkStatus();
    });
  });
}

// Eight comparisons with one threshold make one byte, the first its top bit.
absl::StatusOr<std::unique_ptr<Kernel>> MakeCompareAndBitpack(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T",
      {tensorflow::DT_BOOL, tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
       tensorflow::DT_INT8, tensorflow::DT_INT16, tensorflow::DT_INT32,
       tensorflow::DT_INT64}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    const Tensor& threshold = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(input, threshold));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(threshold, "threshold"));
    const int last = input.rank() - 1;
    if (last < 0 || input.dim(last) % 8 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the last dimension of 'input' must be a multiple of 8, "
                       "but its shape is ",
                       input.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             WithDim(input.shape(), last, input.dim(last) / 8));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_UINT8, shape));
    const auto pack = [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const T limit = *threshold.data<T>();
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        int byte = 0;
        for (int64_t k = 0; k < 8; ++k) {
          byte = byte * 2 + (input.data<T>()[i * 8 + k] > limit ? 1 : 0);
        }
        out->data<uint8_t>()[i] = static_cast<uint8_t>(byte);
      }
      return absl::OkStatus();
    };
    if (input.dtype() == tensorflow::DT_BOOL) {
      return pack(std::type_identity<bool>());
    }
    return VisitNumber(input.dtype(), "input", pack);
  });
}

}  // namespace

void AddBitwiseKernels(KernelCatalog* catalog) {
  catalog->Add("BitwiseAnd", MakeBitwise<AndOp>);
  catalog->Add("BitwiseOr", MakeBitwise<OrOp>);
  catalog->Add("BitwiseXor", MakeBitwise<XorOp>);
  catalog->Add("LeftShift", MakeBitwise<LeftShiftOp>);
  catalog->Add("RightShift", MakeBitwise<RightShiftOp>);
  catalog->Add("Invert", MakeInvert);
  catalog->Add("PopulationCount", MakePopulationCount);
  catalog->Add("CompareAndBitpack", MakeCompareAndBitpack);
}

}  // namespace optfarm::runtime
