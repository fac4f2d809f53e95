// CTCGreedyDecoder: the best class of every step, runs of one class counted
// once and blanks left out (Graves et al., "Connectionist temporal
// classification", ICML 2006).

#include <algorithm>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/nn/ctc_inputs.h"

namespace optfarm::runtime {
namespace {

// What was read off one sequence.
template <typename T>
struct Decoded {
  std::vector<int64_t> labels;
  T log_probability = T(0);
};

// `inputs` is [steps, batch, classes]; the last class is the blank.
template <typename T>
Decoded<T> DecodeSequence(const Tensor& inputs, int64_t sequence,
                          int64_t length, bool merge_repeated) {
  const int64_t classes = inputs.dim(2);
  Decoded<T> decoded;
  int64_t before = -1;
  for (int64_t t = 0; t < length; ++t) {
    const T* row = inputs.data<T>() + (t * inputs.dim(1) + sequence) * classes;
    const int64_t best = std::max_element(row, row + classes) - row;
    decoded.log_probability -= row[best];
    const bool is_repeated = merge_repeated && best == before;
    if (best != classes - 1 && !is_repeated) decoded.labels.push_back(best);
    before = best;
  }
  return decoded;
}

template <typename T>
absl::Status StoreDecoded(const std::vector<Decoded<T>>& all,
                          KernelContext* context) {
  int64_t count = 0;
  size_t longest = 0;
  for (const Decoded<T>& decoded : all) {
    count += static_cast<int64_t>(decoded.labels.size());
    longest = std::max(longest, decoded.labels.size());
  }
  const int64_t batch = static_cast<int64_t>(all.size());
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * indices,
      context->AllocateOutput(0, tensorflow::DT_INT64, Shape{count, 2}));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * values,
      context->AllocateOutput(1, tensorflow::DT_INT64, Shape{count}));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * log_probability,
      context->AllocateOutput(3, DataTypeOf<T>::kValue, Shape{batch, 1}));
  int64_t* index = indices->data<int64_t>();
  int64_t* value = values->data<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    for (size_t k = 0; k < all[b].labels.size(); ++k) {
      *index++ = b;
      *index++ = static_cast<int64_t>(k);
      *value++ = all[b].labels[k];
    }
    log_probability->data<T>()[b] = all[b].log_probability;
  }
  const int64_t shape[] = {batch, static_cast<int64_t>(longest)};
  context->SetOutput(2, Tensor::FromValues<int64_t>(Shape{2}, shape));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGreedy(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool merge_repeated,
                           graph::GetBoolOr(node, "merge_repeated", false));
  return MakeKernel([merge_repeated](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 4));
    const Tensor& inputs = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                             ReadSequenceLengths(inputs, context->input(1)));
    return VisitFloat(inputs.dtype(), "inputs", [&](auto t) -> absl::Status {
      using T = typename decltype(t)::type;
      std::vector<Decoded<T>> all;
      for (size_t b = 0; b < lengths.size(); ++b) {
        all.push_back(DecodeSequence<T>(inputs, static_cast<int64_t>(b),
                                        lengths[b], merge_repeated));
      }
      return StoreDecoded<T>(all, context);
    });
  });
}

}  // namespace

void AddCtcDecoderKernels(KernelCatalog* catalog) {
  catalog->Add("CTCGreedyDecoder", MakeGreedy);
}

}  // namespace optfarm::runtime
