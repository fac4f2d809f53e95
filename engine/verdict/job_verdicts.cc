#include "engine/verdict/job_verdicts.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/verdict/speedup.h"
#include "engine/verdict/verdict_rule.h"

namespace optfarm::verdict {
namespace {

constexpr absl::string_view kBaseline = "float";
// In the name of a variant that a runtime of the user's ran: "int8@tflite". No
// recipe's name has it.
constexpr char kInEngine = '@';

// What one verdict is about. Measurement absent: no device measured the
// variant.
struct Row {
  std::string variant;
  const v1::Measurement* measurement = nullptr;
  // The original's measurement on the same device with as many threads.
  const v1::Measurement* baseline = nullptr;

  bool is_baseline() const { return variant == kBaseline; }
};

// A gate with the parts of its name: what is before the brackets, and the
// device and threads in them.
struct ScopedGate {
  const v1::GateResult* gate = nullptr;
  std::string name;
  std::string device;
  int64_t threads = 0;
};

ScopedGate ParseGate(const v1::GateResult& gate) {
  ScopedGate scoped;
  scoped.gate = &gate;
  const absl::string_view text = gate.name();
  const size_t open = text.find('[');
  scoped.name = std::string(text.substr(0, open));
  if (open == absl::string_view::npos || text.back() != ']') return scoped;
  const std::vector<std::string> parts =
      absl::StrSplit(text.substr(open + 1, text.size() - open - 2), ',');
  scoped.device = parts[0];
  if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &scoped.threads)) {
    scoped.threads = 0;
  }
  return scoped;
}

// The gates of a job, found by the device that they are about.
class JobGates {
 public:
  explicit JobGates(const v1::Job& job) {
    for (const v1::GateResult& gate : job.gates()) {
      gates_.push_back(ParseGate(gate));
    }
    for (size_t i = 0; i < gates_.size(); ++i) {
      if (gates_[i].device.empty()) {
        of_all_.push_back(i);
      } else {
        of_device_[gates_[i].device].push_back(i);
      }
    }
  }

  // Those that concern a measurement, in the job's order; null: all do.
  std::vector<const ScopedGate*> Concerning(
      const v1::Measurement* measurement) const {
    std::vector<const ScopedGate*> found;
    if (measurement == nullptr) {
      for (const ScopedGate& gate : gates_) found.push_back(&gate);
      return found;
    }
    std::set<size_t> places(of_all_.begin(), of_all_.end());
    const auto device = of_device_.find(measurement->device());
    if (device != of_device_.end()) {
      for (const size_t i : device->second) {
        const int64_t threads = gates_[i].threads;
        if (threads == 0 || threads == measurement->threads()) places.insert(i);
      }
    }
    for (const size_t i : places) found.push_back(&gates_[i]);
    return found;
  }

 private:
  std::vector<ScopedGate> gates_;
  std::vector<size_t> of_all_;
  absl::flat_hash_map<std::string, std::vector<size_t>> of_device_;
};

bool IsAccuracyGate(const std::string& name) {
  return name == "max_accuracy_drop" || name == "max_top5_accuracy_drop" ||
         name == "min_top1_agreement";
}

// The agreement that decides: the worst of the outputs it is meaningful for.
std::optional<double> WorstAgreement(const v1::Report& report) {
  std::optional<double> worst;
  for (const v1::TensorComparison& output : report.outputs_compared()) {
    if (output.top1_agreement() < 0) continue;
    if (!worst || output.top1_agreement() < *worst) {
      worst = output.top1_agreement();
    }
  }
  return worst;
}

// The measured file's size, else what the report says of `variant`.
std::optional<int64_t> FileSize(const v1::Measurement* measurement,
                                bool is_baseline, const v1::Report& report) {
  int64_t bytes = measurement == nullptr ? 0 : measurement->file_size_bytes();
  if (bytes <= 0) {
    bytes = is_baseline ? report.size_before().file_bytes()
                        : report.size_after().file_bytes();
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

bool MediansDifferClearly(const Row& row) {
  return std::fabs(row.baseline->median_us() - row.measurement->median_us()) >
         3 * (row.baseline->mad_us() + row.measurement->mad_us());
}

void AddSpeedup(const Row& row, VerdictFacts* facts) {
  if (row.measurement == nullptr || row.baseline == nullptr) return;
  const std::optional<Speedup> found =
      FindSpeedup(*row.baseline, *row.measurement);
  if (!found.has_value()) return;
  facts->speedup = found->ratio;
  if (found->low > 0) {
    facts->speedup_low = found->low;
    facts->speedup_high = found->high;
  }
  facts->speed_difference_is_clear = MediansDifferClearly(row);
}

void AddNoise(const v1::Measurement* measurement, const std::string& whose,
              std::vector<std::string>* reasons) {
  if (measurement == nullptr || !measurement->noisy()) return;
  if (measurement->noise_reasons().empty()) {
    reasons->push_back(absl::StrCat(whose, "not steady"));
  }
  for (const std::string& reason : measurement->noise_reasons()) {
    reasons->push_back(absl::StrCat(whose, reason));
  }
}

void AddGates(const Row& row, const JobGates& gates, VerdictFacts* facts) {
  for (const ScopedGate* scoped : gates.Concerning(row.measurement)) {
    const v1::GateResult& gate = *scoped->gate;
    if (gate.passed()) {
      facts->accuracy_bound_held |= IsAccuracyGate(scoped->name);
    } else {
      facts->failed_gates.push_back(
          {scoped->name, gate.value(), gate.bound(), gate.message()});
    }
  }
}

VerdictFacts FactsOf(const Row& row, const v1::Report& report,
                     const JobGates& gates) {
  VerdictFacts facts;
  facts.baseline = row.is_baseline();
  const std::optional<int64_t> size =
      FileSize(row.measurement, facts.baseline, report);
  const std::optional<int64_t> original =
      FileSize(row.baseline, /*is_baseline=*/true, report);
  if (size && original) {
    facts.size_ratio =
        static_cast<double>(*size) / static_cast<double>(*original);
  }
  AddSpeedup(row, &facts);
  if (facts.baseline) return facts;
  facts.distrust.assign(report.distrust().begin(), report.distrust().end());
  AddGates(row, gates, &facts);
  AddNoise(row.measurement, "", &facts.noise_reasons);
  AddNoise(row.baseline, "float: ", &facts.noise_reasons);
  if (report.has_float_accuracy() && report.has_optimized_accuracy()) {
    facts.top1_change =
        report.optimized_accuracy().top1() - report.float_accuracy().top1();
  }
  facts.agreement = WorstAgreement(report);
  return facts;
}

// The same variant in Optfarm's runtime; null: not measured.
const v1::Measurement* OursBeside(const v1::Measurement& theirs,
                                  const v1::Job& job) {
  const std::string variant =
      theirs.variant().substr(0, theirs.variant().find(kInEngine));
  for (const v1::Measurement& m : job.measurements()) {
    if (m.variant() == variant && m.device() == theirs.device() &&
        m.threads() == theirs.threads()) {
      return &m;
    }
  }
  return nullptr;
}

// An engine's row answers nothing: it says how the engine does beside Optfarm's
// runtime with the same model.
v1::ShippingVerdict Compare(const Row& row, const v1::Job& job) {
  const v1::Measurement& m = *row.measurement;
  v1::ShippingVerdict verdict;
  verdict.set_variant(row.variant);
  verdict.set_device(m.device());
  verdict.set_threads(m.threads());
  verdict.set_file_size_bytes(m.file_size_bytes());
  if (row.baseline != nullptr && m.median_us() > 0) {
    verdict.set_speedup(row.baseline->median_us() / m.median_us());
  }
  std::string text;
  const v1::Measurement* ours = OursBeside(m, job);
  if (ours != nullptr && ours->median_us() > 0) {
    text = absl::StrFormat("%.2f times the time of Optfarm's runtime",
                           m.median_us() / ours->median_us());
  }
  if (m.has_numeric_check()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    m.numeric_check().passed()
                        ? "the same answers"
                        : absl::StrFormat("answers differ by up to %.3g of "
                                          "%.3g",
                                          m.numeric_check().max_abs_error(),
                                          m.numeric_check().max_abs_value()));
  }
  verdict.set_text(text);
  return verdict;
}

// An engine that has no measurement beside this one has a row that says why.
std::vector<v1::ShippingVerdict> FailedEngines(const v1::Measurement& m) {
  std::vector<v1::ShippingVerdict> verdicts;
  for (const v1::EngineFailure& failure : m.engine_failures()) {
    v1::ShippingVerdict& verdict = verdicts.emplace_back();
    verdict.set_variant(
        absl::StrCat(m.variant(), std::string(1, kInEngine), failure.engine()));
    verdict.set_device(m.device());
    verdict.set_threads(m.threads());
    verdict.set_text(absl::StrCat("not measured: ", failure.reason()));
  }
  return verdicts;
}

v1::ShippingVerdict Decide(const Row& row, const v1::Report& report,
                           const JobGates& gates) {
  const VerdictFacts facts = FactsOf(row, report, gates);
  const Verdict decided = DecideVerdict(facts);
  v1::ShippingVerdict verdict;
  verdict.set_variant(row.variant);
  if (row.measurement != nullptr) {
    verdict.set_device(row.measurement->device());
    verdict.set_threads(row.measurement->threads());
  }
  verdict.set_answer(decided.answer);
  verdict.set_text(decided.text);
  if (const auto size = FileSize(row.measurement, facts.baseline, report)) {
    verdict.set_file_size_bytes(*size);
  }
  if (facts.size_ratio) verdict.set_size_ratio(*facts.size_ratio);
  if (facts.speedup) verdict.set_speedup(*facts.speedup);
  if (facts.speedup_low) verdict.set_speedup_low(*facts.speedup_low);
  if (facts.speedup_high) verdict.set_speedup_high(*facts.speedup_high);
  if (facts.top1_change) verdict.set_top1_change(*facts.top1_change);
  if (facts.agreement) verdict.set_agreement(*facts.agreement);
  return verdict;
}

// The variants that the report is about and no device measured.
std::vector<Row> UnmeasuredRows(const v1::Job& job) {
  std::set<std::string> measured;
  for (const v1::Measurement& measurement : job.measurements()) {
    measured.insert(measurement.variant());
  }
  const std::string& recipe = job.report().recipe_name();
  std::vector<Row> rows;
  for (const std::string& variant :
       {std::string(kBaseline), recipe.empty() ? "optimized" : recipe}) {
    if (!measured.contains(variant)) rows.push_back({.variant = variant});
  }
  return rows;
}

// One device after the other, in the order of arrival; within a device by
// thread count; the original first.
std::vector<Row> MeasuredRows(const v1::Job& job) {
  using Place = std::pair<absl::string_view, int>;
  std::map<Place, const v1::Measurement*> baselines;
  for (const v1::Measurement& measurement : job.measurements()) {
    if (measurement.variant() == kBaseline) {
      baselines[{measurement.device(), measurement.threads()}] = &measurement;
    }
  }
  std::map<absl::string_view, size_t> device_order;
  std::map<std::tuple<size_t, int, bool, absl::string_view>, Row> sorted;
  for (const v1::Measurement& measurement : job.measurements()) {
    const size_t place =
        device_order.try_emplace(measurement.device(), device_order.size())
            .first->second;
    const auto baseline =
        baselines.find({measurement.device(), measurement.threads()});
    sorted[{place, measurement.threads(), measurement.variant() != kBaseline,
            measurement.variant()}] = {
        .variant = measurement.variant(),
        .measurement = &measurement,
        .baseline = baseline == baselines.end() ? nullptr : baseline->second};
  }
  std::vector<Row> rows;
  for (auto& [key, row] : sorted) rows.push_back(std::move(row));
  return rows;
}

bool HasEnded(v1::JobState state) {
  return state == v1::SUCCEEDED || state == v1::FAILED ||
         state == v1::CANCELLED;
}

}  // namespace

std::vector<v1::ShippingVerdict> DecideVerdicts(const v1::Job& job) {
  std::vector<Row> rows;
  if (job.has_report()) rows = UnmeasuredRows(job);
  for (Row& row : MeasuredRows(job)) rows.push_back(std::move(row));
  const JobGates gates(job);
  std::vector<v1::ShippingVerdict> verdicts;
  for (const Row& row : rows) {
    const bool is_engine =
        row.measurement != nullptr && absl::StrContains(row.variant, kInEngine);
    verdicts.push_back(is_engine ? Compare(row, job)
                                 : Decide(row, job.report(), gates));
    if (row.measurement == nullptr) continue;
    for (v1::ShippingVerdict& failed : FailedEngines(*row.measurement)) {
      verdicts.push_back(std::move(failed));
    }
  }
  return verdicts;
}

void AddVerdicts(v1::Job& job) {
  if (!job.verdicts().empty() || !HasEnded(job.state())) return;
  for (v1::ShippingVerdict& verdict : DecideVerdicts(job)) {
    *job.add_verdicts() = std::move(verdict);
  }
}

}  // namespace optfarm::verdict
