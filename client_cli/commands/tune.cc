// optctl tune: the variants of a model that are worth having on the user's
// devices, found by measuring there. Every candidate is an ordinary job whose
// request id is made of what is asked for: the same command goes on where an
// interrupted one was, and measures nothing twice.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/interrupt_cleanup.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/job_devices.h"
#include "client_cli/jobs/job_follow.h"
#include "client_cli/jobs/job_request.h"
#include "client_cli/jobs/job_upload.h"
#include "client_cli/jobs/progress_line.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/tune_text.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/tune/pareto_chart.h"
#include "engine/tune/search.h"

namespace optfarm::client_cli {
namespace {

// A third of the samples calibrates, a third guides the search, a third is held
// out; 100 are enough for ranges.
constexpr int64_t kCalibration = 100;
constexpr size_t kIdLength = 10;

class Tune final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    job_.DeclareModel(flags);
    job_.DeclareData(flags);
    flags->Texts("device", "NAME",
                 "Device to tune for (optctl devices); tag:TAG: all devices "
                 "with this tag. Default: the first available device.",
                 &device_names_);
    flags->Integer("threads", "Threads to measure with.", &threads_, 1, 256);
    flags->Choice("objective", "What to ship the best of.", {"latency", "size"},
                  &objective_);
    flags->Number("min_top1",
                  "Least change of top-1 accuracy, in points: -0.5 allows half "
                  "a point less than float. Default with labels: -0.5.",
                  &min_top1_);
    flags->Number("min_agreement",
                  "Least share of samples with float's best class, in percent. "
                  "Default without labels: 98.",
                  &min_agreement_);
    flags->Number("min_snr",
                  "Least signal-to-noise ratio of the worst output, in dB. "
                  "Default without classes: 20.",
                  &min_snr_);
    flags->Duration("budget",
                    "Begin nothing new after this time. Default: until the "
                    "search ends.",
                    &budget_);
    flags->Integer("max_measured",
                   "Most variants that devices measure, the six recipes that "
                   "it begins with among them.",
                   &max_measured_, 6, 200);
    flags->Integer("calibration_samples",
                   "Samples that ranges are taken from; half of the others "
                   "guides the search, half is held out. Default: a third of "
                   "the files, at most 100.",
                   &calibration_samples_, 0, 100'000);
    flags->Integer("seed", "Chooses the calibration samples.", &seed_);
    flags->Switch("one_for_all",
                  "Also find the one variant that loses least over all "
                  "devices.",
                  &one_for_all_);
    flags->Switch("fresh",
                  "Measure again what an earlier tune of the same model and "
                  "data measured.",
                  &fresh_);
    flags->Path("out_dir", "DIR",
                "Folder for the variants to ship: NAME.pb, its recipe "
                "NAME.yaml, tune.json, and a picture for each device.",
                &out_dir_);
    flags->Switch("verbose", "Also say what the search did, step by step.",
                  &verbose_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(tune::SearchOptions options, CheckFlags());
    start_ = context.clock->Now();
    job_.recipe = tune::kBaseName;
    OPTFARM_ASSIGN_OR_RETURN(const JobRequest request, CheckJobFlags(job_));
    if (!out_dir_.empty()) OPTFARM_RETURN_IF_ERROR(MakeFolders(out_dir_));
    OPTFARM_ASSIGN_OR_RETURN(client_, context.connect());
    OPTFARM_RETURN_IF_ERROR(client_->CheckServer());
    OPTFARM_RETURN_IF_ERROR(ChooseDevices(&options));
    OPTFARM_RETURN_IF_ERROR(Upload(request, context));
    options.samples.calibration = CalibrationSamples(request);
    NameTune(options, context);
    *context.err << "Tune " << id_ << " on "
                 << absl::StrJoin(options.devices, ", ")
                 << "; its jobs: optctl list --name=tune-" << id_ << std::endl;
    RemarkOnWorkers(*client_, *context.err);
    const InterruptMessage message(
        "\nIts jobs go on; the same command takes the tune up again where it "
        "is.\n");
    tune::Search search(options);
    OPTFARM_RETURN_IF_ERROR(RunSearch(&search, context));
    v1::TuneReport report = search.Report();
    report.set_model_name(spec_.model().name());
    *report.mutable_model() = spec_.model().digest();
    report.set_threads(static_cast<int>(threads_));
    return Finish(search, report, context);
  }

 private:
  absl::StatusOr<tune::SearchOptions> CheckFlags() const {
    tune::SearchOptions options;
    if (min_top1_.has_value() + min_agreement_.has_value() +
            min_snr_.has_value() >
        1) {
      return UsageError(
          "give one of --min_top1, --min_agreement and --min_snr");
    }
    if (job_.data.calibration.empty()) {
      return UsageError(
          "a tune judges variants on your data; give --calibration=DIR with "
          "pictures or sounds, or --calibration=INPUT=FILE.npy");
    }
    for (const std::string& device : device_names_) {
      if (absl::StartsWith(device, "any:") || device == "none") {
        return UsageError(absl::StrCat(
            "--device='", device,
            "': variants are compared on one device; name it (optctl "
            "devices)"));
      }
    }
    if (min_top1_) {
      options.measure = v1::TuneReport::TOP1_CHANGE;
      options.bound = min_top1_;
      if (*min_top1_ > 100 || *min_top1_ < -100) {
        return UsageError("--min_top1: give points, such as -0.5");
      }
    } else if (min_agreement_) {
      options.measure = v1::TuneReport::AGREEMENT;
      options.bound = min_agreement_;
      if (*min_agreement_ < 0 || *min_agreement_ > 100) {
        return UsageError("--min_agreement: give a percentage, 0 to 100");
      }
    } else if (min_snr_) {
      options.measure = v1::TuneReport::SNR;
      options.bound = min_snr_;
    }
    options.objective =
        objective_ == "size" ? v1::TuneReport::SIZE : v1::TuneReport::LATENCY;
    options.most_measured = static_cast<int>(max_measured_);
    options.samples.seed = static_cast<uint64_t>(seed_);
    options.one_for_all = one_for_all_;
    return options;
  }

  absl::Status ChooseDevices(tune::SearchOptions* options) {
    OPTFARM_ASSIGN_OR_RETURN(options->devices,
                             ExpandDeviceTags(*client_, device_names_));
    if (!options->devices.empty()) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(const std::string device,
                             PickDevice(*client_, {}));
    if (device.empty()) {
      return FromServer(absl::NotFoundError(
          "no device is available to measure on; connect one "
          "(optfarm-agent --server=...), or name one that is away (--device)"));
    }
    options->devices = {device};
    return absl::OkStatus();
  }

  absl::Status Upload(const JobRequest& request,
                      const CommandContext& context) {
    ProgressLine line(context);
    OPTFARM_ASSIGN_OR_RETURN(
        upload_, MakeJobUpload(request, [&line](int64_t done, int64_t total) {
          line.Show(absl::StrCat("reading ", done, " of ", total, " files"));
        }));
    for (const std::string& remark : upload_.remarks) line.Remark(remark);
    OPTFARM_ASSIGN_OR_RETURN(
        const int64_t sent,
        client_->Upload(upload_.files, line.Bytes("sending")));
    if (sent > 0) line.Remark(absl::StrCat("Sent ", HumanBytes(sent), "."));
    spec_ = upload_.spec;
    spec_.clear_benchmark();
    return absl::OkStatus();
  }

  int CalibrationSamples(const JobRequest& request) const {
    if (calibration_samples_ > 0) {
      return static_cast<int>(calibration_samples_);
    }
    int64_t files = 0;
    for (const v1::DataSource& source : request.work.data.dataset.sources()) {
      if (source.role() == v1::DataSource::SAMPLES)
        files += source.files_size();
    }
    // Arrays and record files do not say here how many samples they hold.
    if (files < 3) return kCalibration;
    return static_cast<int>(std::min(kCalibration, files / 3));
  }

  // The same for the same work.
  void NameTune(const tune::SearchOptions& options,
                const CommandContext& context) {
    v1::JobSpec spec = spec_;
    spec.clear_recipe();
    std::string text = absl::StrCat(
        OPTFARM_VERSION, " ", spec.SerializeAsString(), " ", threads_, " ",
        options.samples.calibration, " ", options.samples.seed, " ",
        absl::StrJoin(options.devices, ","));
    if (fresh_) {
      absl::StrAppend(&text, " ", absl::ToUnixNanos(context.clock->Now()));
    }
    id_ = Sha256Hex(text).substr(0, kIdLength);
  }

  absl::Status RunSearch(tune::Search* search, const CommandContext& context) {
    while (true) {
      if (context.clock->Now() - start_ > budget_) search->Finish();
      const std::vector<tune::Candidate> candidates = search->Next();
      if (candidates.empty()) return absl::OkStatus();
      std::vector<std::string> jobs;
      for (const tune::Candidate& candidate : candidates) {
        OPTFARM_ASSIGN_OR_RETURN(const std::string job_id,
                                 Submit(candidate, *search));
        jobs.push_back(job_id);
      }
      for (size_t i = 0; i < candidates.size(); ++i) {
        OPTFARM_ASSIGN_OR_RETURN(v1::Job job,
                                 Follow(jobs[i], i, candidates, context));
        OPTFARM_RETURN_IF_ERROR(search->Add(candidates[i], std::move(job)));
      }
    }
  }

  absl::StatusOr<std::string> Submit(const tune::Candidate& candidate,
                                     const tune::Search& search) {
    v1::SubmitJobRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    spec = spec_;
    *spec.mutable_recipe() = candidate.recipe;
    spec.set_name(absl::StrCat("tune-", id_));
    spec.add_tags(absl::StrCat("tune=", id_));
    spec.set_no_cache(fresh_);
    if (candidate.on_devices) {
      for (const std::string& device : search.devices()) {
        spec.mutable_benchmark()->add_devices(device);
      }
      spec.mutable_benchmark()->add_threads(static_cast<int32_t>(threads_));
    }
    const std::string id = absl::StrCat(
        "tune-", id_, "-",
        Sha256Hex(spec.SerializeAsString()).substr(0, 4 * kIdLength));
    for (int attempt = 1;; ++attempt) {
      request.set_client_request_id(
          attempt == 1 ? id : absl::StrCat(id, "-", attempt));
      const absl::StatusOr<v1::SubmitJobResponse> response = SubmitWithFiles(
          *client_, request, upload_.files, [](int64_t, int64_t) {});
      OPTFARM_RETURN_IF_ERROR(
          Annotate(response.status(),
                   absl::StrCat("submitting candidate ", candidate.name)));
      if (!response->existed() || !MayGoBetter(response->job())) {
        return response->job().job_id();
      }
    }
  }

  // Whether an earlier tune's job ended by the farm's trouble or somebody's
  // will, so that it is worth another go.
  static bool MayGoBetter(const v1::Job& job) {
    return job.state() == v1::CANCELLED ||
           (job.state() == v1::FAILED &&
            job.failure().kind() == v1::Failure::INTERNAL);
  }

  absl::StatusOr<v1::Job> Follow(const std::string& job_id, size_t index,
                                 const std::vector<tune::Candidate>& all,
                                 const CommandContext& context) {
    ProgressLine line(context);
    const std::string text =
        absl::StrCat(all[index].name, ", ", index + 1, " of ", all.size());
    line.Show(text);
    FollowOptions options;
    options.clock = context.clock;
    options.on_event = [&](const v1::JobEvent&) { line.Show(text); };
    return FollowJob(client_.get(), job_id, options);
  }

  absl::StatusOr<ExitCode> Finish(const tune::Search& search,
                                  const v1::TuneReport& report,
                                  const CommandContext& context) {
    std::vector<std::string> written;
    if (!out_dir_.empty()) {
      OPTFARM_RETURN_IF_ERROR(WriteFiles(search, report, &written));
    }
    switch (context.format) {
      case OutputFormat::kJson:
        *context.out << ProtoToJson(report);
        break;
      case OutputFormat::kCsv:
        for (const v1::TunedDevice& device : report.devices()) {
          *context.out << MakeTuneTable(device, report).ToCsv();
        }
        break;
      default:
        *context.out << TuneText(report, verbose_);
        for (const std::string& file : written) {
          *context.out << "Wrote " << file << "\n";
        }
        if (written.empty()) *context.out << WhereText(report);
    }
    const bool all_have_one =
        absl::c_all_of(report.devices(), [](const v1::TunedDevice& device) {
          return !device.recommended().empty();
        });
    return all_have_one ? ExitCode::kOk : ExitCode::kGateMissed;
  }

  static std::string WhereText(const v1::TuneReport& report) {
    std::set<std::string> told;
    std::string text;
    for (const v1::TunedDevice& device : report.devices()) {
      for (const v1::TunedVariant& variant : device.variants()) {
        if (variant.name() != device.recommended()) continue;
        if (!told.insert(variant.name()).second) continue;
        absl::StrAppend(&text, variant.name(), " is of job ", variant.job_id(),
                        ": optctl download ", variant.job_id(),
                        " --out_dir=DIR (or --out_dir here)\n");
      }
    }
    return text;
  }

  absl::Status WriteFiles(const tune::Search& search,
                          const v1::TuneReport& report,
                          std::vector<std::string>* written) {
    const auto write = [&](const std::string& name, const std::string& text) {
      written->push_back(JoinPath(out_dir_, name));
      return WriteFileAtomically(written->back(), text);
    };
    OPTFARM_RETURN_IF_ERROR(write("tune.json", ProtoToJson(report)));
    std::set<std::string> names;
    if (!report.one_for_all().empty()) names.insert(report.one_for_all());
    int number = 0;
    for (const v1::TunedDevice& device : report.devices()) {
      // A device's name may hold what no file's may.
      OPTFARM_RETURN_IF_ERROR(
          write(absl::StrCat("pareto_", ++number, ".svg"),
                tune::DrawPareto(device, report.measure(), report.bound())));
      if (!device.recommended().empty()) names.insert(device.recommended());
    }
    for (const std::string& name : names) {
      const tune::Trial& trial = *search.Find(name);
      OPTFARM_RETURN_IF_ERROR(write(
          absl::StrCat(name, ".yaml"),
          optimize::PrintRecipe(tune::RecipeToKeep(trial.candidate, name))));
      written->push_back(JoinPath(out_dir_, absl::StrCat(name, ".pb")));
      OPTFARM_RETURN_IF_ERROR(
          client_->Download(trial.job.report().optimized_model(),
                            written->back(), [](int64_t, int64_t) {}));
    }
    return absl::OkStatus();
  }

  JobFlags job_;
  std::vector<std::string> device_names_;
  int64_t threads_ = 1, max_measured_ = 16, calibration_samples_ = 0, seed_ = 1;
  std::string objective_ = "latency", out_dir_;
  std::optional<double> min_top1_, min_agreement_, min_snr_;
  absl::Duration budget_ = absl::InfiniteDuration();
  bool one_for_all_ = false, fresh_ = false, verbose_ = false;

  std::unique_ptr<FarmClient> client_;
  JobUpload upload_;
  v1::JobSpec spec_;
  std::string id_;
  absl::Time start_;
};

}  // namespace

CommandInfo TuneCommand() {
  return {"tune",
          "Find the best variants of a model for your devices, by measuring.",
          "Measures the built-in recipes on each device, then mixes: layers "
          "that lose most by 8 bits go back to float, predicted first, judged "
          "on few samples next, and measured last. What is recommended is "
          "judged on samples that the search has not seen. Every candidate is "
          "an ordinary job; the same command goes on where an interrupted one "
          "was. The exit code is 6 if nothing keeps the bound on some "
          "device.\n"
          "  optctl tune model.pb --calibration=pictures/ --labels=labels.txt "
          "\\\n"
          "      --device=pi4 --device=pixel7 --min_top1=-0.5 --out_dir=tuned",
          [] { return std::unique_ptr<Command>(new Tune); }};
}

}  // namespace optfarm::client_cli
