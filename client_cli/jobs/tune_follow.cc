#include "client_cli/jobs/tune_follow.h"

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/tune_text.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/tune/candidates.h"
#include "engine/tune/pareto_chart.h"
#include "rpc/retry.h"

namespace optfarm::client_cli {
namespace {

// Between two looks: a tune takes minutes, and the answer is small.
constexpr absl::Duration kInterval = absl::Seconds(1);

// The jobs of the variants to ship, by the variants' names.
std::map<std::string, std::string> JobsToShip(const v1::TuneReport& report) {
  std::map<std::string, std::string> jobs;
  for (const v1::TunedDevice& device : report.devices()) {
    for (const v1::TunedVariant& variant : device.variants()) {
      if (variant.name() == device.recommended() ||
          variant.name() == report.one_for_all()) {
        jobs.emplace(variant.name(), variant.job_id());
      }
    }
  }
  return jobs;
}

std::string DescriptionOf(const v1::TuneReport& report,
                          const std::string& name) {
  for (const v1::TunedDevice& device : report.devices()) {
    for (const v1::TunedVariant& variant : device.variants()) {
      if (variant.name() == name) return variant.description();
    }
  }
  return "";
}

std::string WhereText(const v1::TuneReport& report) {
  std::string text;
  for (const auto& [name, job_id] : JobsToShip(report)) {
    absl::StrAppend(&text, name, " is of job ", job_id, ": optctl download ",
                    job_id, " --out_dir=DIR (or --out_dir here)\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<v1::Tune> FollowTune(FarmClient& client,
                                    const std::string& tune_id,
                                    const FollowTuneOptions& options) {
  absl::Time answered = options.clock->Now();
  while (true) {
    const absl::StatusOr<v1::Tune> tune = client.GetTune(tune_id);
    if (tune.ok()) {
      answered = options.clock->Now();
      if (options.on_look) options.on_look(*tune);
      if (tune->state() != v1::TUNE_RUNNING) return tune;
    } else if (!rpc::IsTransient(tune.status())) {
      return tune.status();
    } else if (options.clock->Now() - answered >= options.patience) {
      return WithExitCode(
          absl::UnavailableError(absl::StrCat(
              "no answer for ", HumanDuration(options.patience), " while tune ",
              tune_id, " was followed; it goes on without us: ",
              tune.status().message())),
          ExitCode::kUnavailable);
    }
    options.clock->Sleep(kInterval);
  }
}

absl::StatusOr<std::vector<std::string>> WriteTuneFiles(
    FarmClient& client, const v1::TuneReport& report,
    const std::string& folder) {
  std::vector<std::string> written;
  const auto write = [&](const std::string& name, const std::string& text) {
    written.push_back(JoinPath(folder, name));
    return WriteFileAtomically(written.back(), text);
  };
  OPTFARM_RETURN_IF_ERROR(write("tune.json", ProtoToJson(report)));
  int number = 0;
  for (const v1::TunedDevice& device : report.devices()) {
    // A device's name may hold what no file's may.
    OPTFARM_RETURN_IF_ERROR(
        write(absl::StrCat("pareto_", ++number, ".svg"),
              tune::DrawPareto(device, report.measure(), report.bound())));
  }
  for (const auto& [name, job_id] : JobsToShip(report)) {
    OPTFARM_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(job_id));
    tune::Candidate candidate;
    candidate.description = DescriptionOf(report, name);
    candidate.recipe = job.spec().recipe();
    OPTFARM_RETURN_IF_ERROR(
        write(absl::StrCat(name, ".yaml"),
              optimize::PrintRecipe(tune::RecipeToKeep(candidate, name))));
    written.push_back(JoinPath(folder, absl::StrCat(name, ".pb")));
    OPTFARM_RETURN_IF_ERROR(client.Download(job.report().optimized_model(),
                                            written.back(),
                                            [](int64_t, int64_t) {}));
  }
  return written;
}

absl::StatusOr<ExitCode> PrintTune(FarmClient& client, const v1::Tune& tune,
                                   const std::string& folder, bool verbose,
                                   const CommandContext& context) {
  if (tune.state() != v1::TUNE_SUCCEEDED) {
    return WithExitCode(absl::FailedPreconditionError(TuneStateText(tune)),
                        ExitCode::kJobFailed);
  }
  const v1::TuneReport& report = tune.report();
  std::vector<std::string> written;
  if (!folder.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(written, WriteTuneFiles(client, report, folder));
  }
  switch (context.format) {
    case OutputFormat::kTable:
      *context.out << TuneText(report, verbose);
      for (const std::string& file : written) {
        *context.out << "Wrote " << file << "\n";
      }
      if (written.empty()) *context.out << WhereText(report);
      break;
    case OutputFormat::kCsv:
      for (const v1::TunedDevice& device : report.devices()) {
        *context.out << MakeTuneTable(device, report).ToCsv();
      }
      break;
    default:
      *context.out << ProtoToJson(report);
  }
  const bool all_have_one =
      absl::c_all_of(report.devices(), [](const v1::TunedDevice& device) {
        return !device.recommended().empty();
      });
  return all_have_one ? ExitCode::kOk : ExitCode::kGateMissed;
}

}  // namespace optfarm::client_cli
