#include "engine/optimize/samples/sample_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace optfarm::optimize {
namespace {

constexpr size_t kMaxNamed = 100;

}  // namespace

std::optional<std::vector<runtime::Tensor>> SampleReader::Read(int64_t index) {
  if (bad_.count(index) > 0) return std::nullopt;
  return Admit(index, dataset_.Sample(index));
}

std::vector<std::optional<std::vector<runtime::Tensor>>> SampleReader::ReadMany(
    absl::Span<const int64_t> indices, runtime::ThreadPool* pool) {
  std::vector<absl::StatusOr<std::vector<runtime::Tensor>>> samples(
      indices.size(), std::vector<runtime::Tensor>());
  pool->ParallelFor(static_cast<int64_t>(indices.size()), 1,
                    [&](int64_t first, int64_t last) {
                      for (int64_t i = first; i < last; ++i) {
                        samples[i] = dataset_.Sample(indices[i]);
                      }
                    });
  std::vector<std::optional<std::vector<runtime::Tensor>>> usable;
  for (size_t i = 0; i < indices.size(); ++i) {
    usable.push_back(Admit(indices[i], std::move(samples[i])));
  }
  return usable;
}

std::optional<std::vector<runtime::Tensor>> SampleReader::Admit(
    int64_t index, absl::StatusOr<std::vector<runtime::Tensor>> sample) {
  tried_.insert(index);
  if (sample.ok()) return *std::move(sample);
  bad_[index] = std::string(sample.status().message());
  return std::nullopt;
}

absl::Status SampleReader::CheckBad() const {
  const size_t bad = bad_.size();
  const size_t tried = tried_.size();
  const bool too_many = bad >= 2 && bad * 5 > tried;
  if (bad == 0 || (bad < tried && !too_many)) return absl::OkStatus();
  const auto& [index, reason] = *bad_.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      bad, " of ", tried, " samples cannot be used; the first is '",
      dataset_.SampleName(index), "': ", reason, ". Remove or replace them."));
}

std::vector<v1::SkippedMatch> SampleReader::Bad() const {
  std::vector<v1::SkippedMatch> list;
  for (const auto& [index, reason] : bad_) {
    if (list.size() == kMaxNamed) break;
    v1::SkippedMatch& entry = list.emplace_back();
    entry.set_node(dataset_.SampleName(index));
    entry.set_reason(reason);
  }
  return list;
}

}  // namespace optfarm::optimize
