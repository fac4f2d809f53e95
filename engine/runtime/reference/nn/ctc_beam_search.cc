// CTCBeamSearchDecoder: the most probable texts, each summed over all ways of
// saying it, of which the best `beam_width` are kept at every step (Graves and
// Jaitly, "Towards End-to-End Speech Recognition with Recurrent Neural
// Networks", ICML 2014). All probabilities are logarithms.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/nn/ctc_inputs.h"

namespace optfarm::runtime {
namespace {

// More would take memory without end; TensorFlow's default is 100.
constexpr int64_t kMostBeams = 1 << 14;

struct BeamAttrs {
  int64_t beam_width = 100;
  int64_t top_paths = 1;
  bool merge_repeated = true;
};

template <typename T>
T Never() {
  return -std::numeric_limits<T>::infinity();
}

// log(e^a + e^b).
template <typename T>
T Joined(T a, T b) {
  if (a < b) std::swap(a, b);
  return b == Never<T>() ? a : a + std::log1p(std::exp(b - a));
}

// Texts that begin alike share their beginnings: a text is its last label and
// the text before it.
class Texts {
 public:
  static constexpr int kNone = -1;
  static constexpr int kEmpty = 0;

  // The number of `text` with one more label, kNone when it has none yet.
  int FindLonger(int text, int64_t label) const {
    const auto it = longer_.find({text, label});
    return it == longer_.end() ? kNone : it->second;
  }
  int AddLonger(int text, int64_t label) {
    const int number = static_cast<int>(entries_.size());
    longer_.emplace(std::pair(text, label), number);
    entries_.push_back({text, label});
    return number;
  }
  int Before(int text) const { return entries_[text].before; }
  // -1 for the empty text.
  int64_t LastLabel(int text) const { return entries_[text].label; }

  std::vector<int64_t> Labels(int text, bool merge_repeated) const {
    std::vector<int64_t> labels;
    for (; text != kEmpty; text = Before(text)) {
      const int64_t label = LastLabel(text);
      if (!merge_repeated || labels.empty() || labels.back() != label) {
        labels.push_back(label);
      }
    }
    std::reverse(labels.begin(), labels.end());
    return labels;
  }

 private:
  struct Entry {
    int before = -1;
    int64_t label = -1;
  };
  std::vector<Entry> entries_ = {Entry()};
  std::map<std::pair<int, int64_t>, int> longer_;
};

// Of one text after some steps: the ways that end in a blank and those that end
// in its last label.
template <typename T>
struct Probability {
  T blank = Never<T>();
  T label = Never<T>();
  T total() const { return Joined(blank, label); }
};

// A text that has a number, and label -1; or one with that label more, which
// gets a number when it is kept.
using Candidate = std::pair<int, int64_t>;
template <typename T>
using Candidates =
    std::map<Candidate, Probability<T>, std::less<Candidate>,
             CountingAllocator<std::pair<const Candidate, Probability<T>>>>;

// The logarithms of the classes' probabilities.
template <typename T>
std::vector<T> LogSoftmax(const T* row, int64_t classes) {
  const T most = *std::max_element(row, row + classes);
  T sum = T(0);
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - most);
  const T offset = most + std::log(sum);
  std::vector<T> result(row, row + classes);
  for (T& value : result) value -= offset;
  return result;
}

template <typename T>
struct Beam {
  int text = Texts::kEmpty;
  Probability<T> probability;
};

// The best first; of equals the one with the lower number.
template <typename T>
std::vector<Beam<T>> Best(const Candidates<T>& candidates, int64_t most,
                          Texts* texts) {
  using Entry = std::pair<Candidate, Probability<T>>;
  std::vector<Entry> ranked(candidates.begin(), candidates.end());
  const auto is_better = [](const Entry& a, const Entry& b) {
    const T x = a.second.total(), y = b.second.total();
    return x != y ? x > y : a.first < b.first;
  };
  const size_t kept = std::min(ranked.size(), static_cast<size_t>(most));
  std::partial_sort(ranked.begin(),
                    ranked.begin() + static_cast<ptrdiff_t>(kept), ranked.end(),
                    is_better);
  std::vector<Beam<T>> beams;
  for (size_t i = 0; i < kept; ++i) {
    const auto& [text, label] = ranked[i].first;
    beams.push_back(
        {label < 0 ? text : texts->AddLonger(text, label), ranked[i].second});
  }
  return beams;
}

// What the texts of one step become with the next: `log_p` are its classes, the
// last of which is the blank.
template <typename T>
Candidates<T> Advance(const std::vector<Beam<T>>& beams,
                      const std::vector<T>& log_p, const Texts& texts) {
  const int64_t blank = static_cast<int64_t>(log_p.size()) - 1;
  Candidates<T> next;
  for (const auto& [text, p] : beams) {
    Probability<T>& same = next[{text, -1}];
    same.blank = Joined(same.blank, p.total() + log_p[blank]);
    const int64_t last = texts.LastLabel(text);
    if (last >= 0) same.label = Joined(same.label, p.label + log_p[last]);
    for (int64_t c = 0; c < blank; ++c) {
      // The same label twice has a blank between.
      const T before = c == last ? p.blank : p.total();
      if (before == Never<T>() || log_p[c] == Never<T>()) continue;
      const int known = texts.FindLonger(text, c);
      Probability<T>& longer =
          next[known == Texts::kNone ? Candidate(text, c)
                                     : Candidate(known, -1)];
      longer.label = Joined(longer.label, before + log_p[c]);
    }
  }
  return next;
}

struct Path {
  std::vector<int64_t> labels;
  double log_probability = 0.0;
};

template <typename T>
std::vector<Path> Search(const Tensor& inputs, int64_t sequence, int64_t length,
                         const BeamAttrs& attrs) {
  const int64_t classes = inputs.dim(2);
  Texts texts;
  std::vector<Beam<T>> beams(1);
  beams[0].probability.blank = T(0);
  for (int64_t t = 0; t < length; ++t) {
    LeaveIfRunEnded();
    const T* row = inputs.data<T>() + (t * inputs.dim(1) + sequence) * classes;
    beams = Best(Advance(beams, LogSoftmax(row, classes), texts),
                 attrs.beam_width, &texts);
  }
  std::vector<Path> paths;
  for (const auto& [text, p] : beams) {
    if (static_cast<int64_t>(paths.size()) == attrs.top_paths) break;
    paths.push_back({texts.Labels(text, attrs.merge_repeated),
                     static_cast<double>(p.total())});
  }
  return paths;
}

// Path `rank` of every sequence, as the sparse tensor that stands in three
// outputs.
absl::Status StoreRank(const std::vector<std::vector<Path>>& all, size_t rank,
                       size_t top_paths, KernelContext* context) {
  std::vector<int64_t> indices;
  std::vector<int64_t> values;
  int64_t longest = 0;
  for (size_t b = 0; b < all.size(); ++b) {
    const std::vector<int64_t>& labels = all[b][rank].labels;
    longest = std::max(longest, static_cast<int64_t>(labels.size()));
    for (size_t k = 0; k < labels.size(); ++k) {
      indices.push_back(static_cast<int64_t>(b));
      indices.push_back(static_cast<int64_t>(k));
      values.push_back(labels[k]);
    }
  }
  const int64_t count = static_cast<int64_t>(values.size());
  const int64_t shape[] = {static_cast<int64_t>(all.size()), longest};
  const int first = static_cast<int>(rank);
  const int step = static_cast<int>(top_paths);
  context->SetOutput(first,
                     Tensor::FromValues<int64_t>(Shape{count, 2}, indices));
  context->SetOutput(first + step,
                     Tensor::FromValues<int64_t>(Shape{count}, values));
  context->SetOutput(first + 2 * step,
                     Tensor::FromValues<int64_t>(Shape{2}, shape));
  return absl::OkStatus();
}

template <typename T>
absl::Status SearchAll(const Tensor& inputs,
                       const std::vector<int64_t>& lengths,
                       const BeamAttrs& attrs, KernelContext* context) {
  std::vector<std::vector<Path>> all;
  const auto wanted = static_cast<size_t>(attrs.top_paths);
  for (size_t b = 0; b < lengths.size(); ++b) {
    all.push_back(
        Search<T>(inputs, static_cast<int64_t>(b), lengths[b], attrs));
    if (all.back().size() < wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", b, " has ", all.back().size(),
                       " paths, but top_paths is ", wanted));
    }
  }
  for (size_t rank = 0; rank < wanted; ++rank) {
    OPTFARM_RETURN_IF_ERROR(StoreRank(all, rank, wanted, context));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * log_probability,
      context->AllocateOutput(
          3 * static_cast<int>(wanted), DataTypeOf<T>::kValue,
          Shape{static_cast<int64_t>(all.size()), attrs.top_paths}));
  for (size_t i = 0; i < all.size() * wanted; ++i) {
    log_probability->data<T>()[i] =
        static_cast<T>(all[i / wanted][i % wanted].log_probability);
  }
  return absl::OkStatus();
}

absl::StatusOr<BeamAttrs> ReadBeamAttrs(const tensorflow::NodeDef& node) {
  BeamAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.beam_width, graph::GetInt(node, "beam_width"));
  OPTFARM_ASSIGN_OR_RETURN(attrs.top_paths, graph::GetInt(node, "top_paths"));
  OPTFARM_ASSIGN_OR_RETURN(attrs.merge_repeated,
                           graph::GetBoolOr(node, "merge_repeated", true));
  if (attrs.beam_width < 1 || attrs.beam_width > kMostBeams ||
      attrs.top_paths < 1 || attrs.top_paths > attrs.beam_width) {
    return absl::InvalidArgumentError(absl::StrCat(
        "beam_width ", attrs.beam_width, " must be from 1 to ", kMostBeams,
        " and top_paths ", attrs.top_paths, " from 1 to that"));
  }
  return attrs;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBeamSearch(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const BeamAttrs attrs, ReadBeamAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(
        RequireOutputs(*context, 3 * static_cast<int>(attrs.top_paths) + 1));
    const Tensor& inputs = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                             ReadSequenceLengths(inputs, context->input(1)));
    return VisitFloat(inputs.dtype(), "inputs", [&](auto tag) -> absl::Status {
      return SearchAll<typename decltype(tag)::type>(inputs, lengths, attrs,
                                                     context);
    });
  });
}

}  // namespace

void AddCtcBeamSearchKernels(KernelCatalog* catalog) {
  catalog->Add("CTCBeamSearchDecoder", MakeBeamSearch);
}

}  // namespace optfarm::runtime
