// Vectors as sets and histograms: ListDiff, Unique and its kin, Bincount,
// HistogramFixedWidth.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/ranks.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// More are taken for an attack on memory.
constexpr int64_t kMaxBins = int64_t{1} << 26;

absl::Status StoreIntegers(int i, DataType dtype,
                           const std::vector<int64_t>& values,
                           KernelContext* context) {
  const Shape shape{static_cast<int64_t>(values.size())};
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(i, dtype, shape));
  return VisitInteger(dtype, "out_idx", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    for (size_t k = 0; k < values.size(); ++k) {
      out->data<T>()[k] = static_cast<T>(values[k]);
    }
    return absl::OkStatus();
  });
}

// The elements at the given places, as a vector.
absl::Status StorePicked(int i, const Tensor& from,
                         const std::vector<int64_t>& places,
                         KernelContext* context) {
  const Shape shape{static_cast<int64_t>(places.size())};
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(i, from.dtype(), shape));
  return VisitBySize(from.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    for (size_t k = 0; k < places.size(); ++k) {
      out->data<T>()[k] = from.data<T>()[places[k]];
    }
    return absl::OkStatus();
  });
}

// Calls visit() with the type to compare elements by: bits for everything but
// floats (0 equals -0, NaN equals nothing) and strings.
template <typename Visitor>
absl::Status VisitComparable(DataType dtype, Visitor visit) {
  if (dtype == tensorflow::DT_FLOAT) return visit(std::type_identity<float>());
  if (dtype == tensorflow::DT_DOUBLE) {
    return visit(std::type_identity<double>());
  }
  if (dtype == tensorflow::DT_COMPLEX64 || ElementSize(dtype) == 16) {
    return UnsupportedDtype("x", dtype);
  }
  return VisitBySize(dtype, "x", [&](auto tag) -> absl::Status {
    if constexpr (std::is_same_v<typename decltype(tag)::type,
                                 std::complex<double>>) {
      return absl::OkStatus();  // Refused above.
    } else {
      return visit(tag);
    }
  });
}

// Equals nothing, not even itself, which hash tables do not bear.
template <typename T>
bool IsNan(const T& x) {
  return !(x == x);
}

// The types that VisitComparable takes.
absl::Status RequireComparable(const tensorflow::NodeDef& node) {
  return RequireTypeAttr(
      node, "T",
      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_HALF,
       tensorflow::DT_BFLOAT16, tensorflow::DT_INT8, tensorflow::DT_INT16,
       tensorflow::DT_INT32, tensorflow::DT_INT64, tensorflow::DT_UINT8,
       tensorflow::DT_UINT16, tensorflow::DT_UINT32, tensorflow::DT_UINT64,
       tensorflow::DT_BOOL, tensorflow::DT_STRING, tensorflow::DT_QINT8,
       tensorflow::DT_QUINT8, tensorflow::DT_QINT16, tensorflow::DT_QUINT16,
       tensorflow::DT_QINT32});
}

absl::StatusOr<DataType> ReadIndexType(const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "out_idx", OPTFARM_INDEX_TYPES));
  return graph::GetTypeOr(node, "out_idx", tensorflow::DT_INT32);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeListDiff(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireComparable(node));
  OPTFARM_ASSIGN_OR_RETURN(const DataType index, ReadIndexType(node));
  return MakeKernel([index](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& x = context->input(0);
    const Tensor& y = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, y));
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 1));
    OPTFARM_RETURN_IF_ERROR(RequireRank(y, "y", 1));
    std::vector<int64_t> places;
    OPTFARM_RETURN_IF_ERROR(
        VisitComparable(x.dtype(), [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          absl::flat_hash_set<T> known;
          for (const T& value : y.flat<T>()) {
            if (!IsNan(value)) known.insert(value);
          }
          for (int64_t i = 0; i < x.num_elements(); ++i) {
            const T& value = x.data<T>()[i];
            if (IsNan(value) || !known.contains(value)) places.push_back(i);
          }
          return absl::OkStatus();
        }));
    OPTFARM_RETURN_IF_ERROR(StorePicked(0, x, places, context));
    return StoreIntegers(1, index, places, context);
  });
}

// The distinct elements in the order of their first appearance; for each
// element which of them it is; how often each appears.
template <bool kHasAxis, bool kHasCounts>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUnique(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireComparable(node));
  OPTFARM_ASSIGN_OR_RETURN(const DataType index, ReadIndexType(node));
  return MakeKernel([index](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, kHasAxis ? 2 : 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, kHasCounts ? 3 : 2));
    const Tensor& x = context->input(0);
    // An axis can only be that of the vector.
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 1));
    if (kHasAxis && context->input(1).num_elements() > 0) {
      OPTFARM_RETURN_IF_ERROR(ReadAxis(context->input(1), "axis", 1).status());
    }
    std::vector<int64_t> firsts;
    std::vector<int64_t> numbers;
    std::vector<int64_t> counts;
    OPTFARM_RETURN_IF_ERROR(
        VisitComparable(x.dtype(), [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          absl::flat_hash_map<T, int64_t> known;
          for (int64_t i = 0; i < x.num_elements(); ++i) {
            const T& value = x.data<T>()[i];
            int64_t number = static_cast<int64_t>(firsts.size());
            if (!IsNan(value)) {
              number = known.emplace(value, number).first->second;
            }
            if (number == static_cast<int64_t>(firsts.size())) {
              firsts.push_back(i);
              counts.push_back(0);
            }
            numbers.push_back(number);
            ++counts[number];
          }
          return absl::OkStatus();
        }));
    OPTFARM_RETURN_IF_ERROR(StorePicked(0, x, firsts, context));
    OPTFARM_RETURN_IF_ERROR(StoreIntegers(1, index, numbers, context));
    return kHasCounts ? StoreIntegers(2, index, counts, context)
                      : absl::OkStatus();
  });
}

absl::StatusOr<int64_t> ReadBinCount(const Tensor& tensor,
                                     absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bins, ReadInteger(tensor, name));
  if (bins < 0 || bins > kMaxBins) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' must be from 0 to ", kMaxBins, ", but is ", bins));
  }
  return bins;
}

// Values outside of [0, size) are left out.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBincount(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T",
                      {tensorflow::DT_INT32, tensorflow::DT_INT64,
                       tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                             context->input(0).AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(const int64_t size,
                             ReadBinCount(context->input(1), "size"));
    const Tensor& weights = context->input(2);
    const bool is_weighted = weights.num_elements() > 0;
    if (is_weighted) {
      OPTFARM_RETURN_IF_ERROR(
          RequireShape(weights, "weights", context->input(0).shape()));
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Zeros(weights.dtype(), Shape{size}));
    OPTFARM_RETURN_IF_ERROR(
        VisitNumber(weights.dtype(), "weights", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          for (size_t i = 0; i < values.size(); ++i) {
            if (values[i] < 0) {
              return absl::InvalidArgumentError(
                  absl::StrCat("arr[", i, "] = ", values[i], " is negative"));
            }
            if (values[i] >= size) continue;
            T& bin = out.data<T>()[values[i]];
            bin = static_cast<T>(bin +
                                 (is_weighted ? weights.data<T>()[i] : T(1)));
          }
          return absl::OkStatus();
        }));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// Bins of equal width; what lies outside counts in the first or last.
absl::StatusOr<std::unique_ptr<Kernel>> MakeHistogram(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "T",
                      {tensorflow::DT_INT32, tensorflow::DT_INT64,
                       tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "dtype", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "dtype", tensorflow::DT_INT32));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& values = context->input(0);
    const Tensor& range = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(values, range));
    OPTFARM_RETURN_IF_ERROR(RequireShape(range, "value_range", Shape{2}));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t bins,
                             ReadBinCount(context->input(2), "nbins"));
    std::vector<int64_t> counts(bins, 0);
    OPTFARM_RETURN_IF_ERROR(
        VisitNumber(values.dtype(), "values", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          const double low = static_cast<double>(range.data<T>()[0]);
          const double high = static_cast<double>(range.data<T>()[1]);
          if (!(low < high) || bins < 1) {
            return absl::InvalidArgumentError(
                absl::StrCat("a range from ", low, " to ", high, " and ", bins,
                             " bins make no histogram"));
          }
          const double step = (high - low) / static_cast<double>(bins);
          for (T value : values.flat<T>()) {
            const double at = (static_cast<double>(value) - low) / step;
            // NaN, which compares with nothing, lands in the first bin.
            const int64_t bin = at >= static_cast<double>(bins) ? bins - 1
                                : at > 0.0 ? static_cast<int64_t>(at)
                                           : 0;
            ++counts[bin];
          }
          return absl::OkStatus();
        }));
    return StoreIntegers(0, dtype, counts, context);
  });
}

}  // namespace

void AddSetKernels(KernelCatalog* catalog) {
  AddRankKernels(catalog);
  catalog->Add("ListDiff", MakeListDiff);
  catalog->Add("Unique", MakeUnique<false, false>);
  catalog->Add("UniqueV2", MakeUnique<true, false>);
  catalog->Add("UniqueWithCounts", MakeUnique<false, true>);
  catalog->Add("Bincount", MakeBincount);
  catalog->Add("HistogramFixedWidth", MakeHistogram);
}

}  // namespace optfarm::runtime
