// optctl tune: the variants of a model that are worth having on the user's
// devices, found by measuring there. The server searches; the same command
// follows a tune that it has begun.

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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
#include "client_cli/jobs/tune_follow.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

constexpr size_t kIdLength = 40;
// The flags of a job are checked with a recipe; a tune chooses its own.
constexpr char kAnyRecipe[] = "int8";

class Tune final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    job_.DeclareModel(flags);
    job_.DeclareData(flags);
    flags->Texts("device", "NAME",
                 "Device to tune for (optctl devices); tag:TAG: all devices "
                 "with this tag. Default: the first available device.",
                 &device_names_);
    flags->Integers("threads",
                    "Threads to measure with; with several, up to 4, the "
                    "number is chosen with the variant. Default: 1.",
                    &threads_);
    flags->Text("cpus", "0,1",
                "Processors to measure on, as the devices count them. Default: "
                "as each agent is told.",
                &cpus_);
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
    OPTFARM_ASSIGN_OR_RETURN(v1::TuneSpec spec, CheckFlags());
    job_.recipe = kAnyRecipe;
    OPTFARM_ASSIGN_OR_RETURN(const JobRequest request, CheckJobFlags(job_));
    if (!out_dir_.empty()) OPTFARM_RETURN_IF_ERROR(MakeFolders(out_dir_));
    OPTFARM_ASSIGN_OR_RETURN(client_, context.connect());
    OPTFARM_RETURN_IF_ERROR(client_->CheckServer());
    OPTFARM_RETURN_IF_ERROR(ChooseDevices(&spec));
    OPTFARM_RETURN_IF_ERROR(Upload(request, context));
    *spec.mutable_job() = upload_.spec;
    spec.mutable_job()->clear_recipe_source();
    spec.mutable_job()->clear_benchmark();
    OPTFARM_ASSIGN_OR_RETURN(v1::Tune tune, Create(spec, context));
    *context.err << "Tune " << tune.tune_id() << " on "
                 << absl::StrJoin(spec.devices(), ", ")
                 << "; its jobs: optctl list --name=" << tune.job_name()
                 << std::endl;
    OPTFARM_ASSIGN_OR_RETURN(tune, Follow(tune, context));
    return PrintTune(*client_, tune, out_dir_, verbose_, context);
  }

 private:
  absl::StatusOr<v1::TuneSpec> CheckFlags() const {
    v1::TuneSpec spec;
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
      spec.set_measure(v1::TuneReport::TOP1_CHANGE);
      spec.set_bound(*min_top1_);
      if (*min_top1_ > 100 || *min_top1_ < -100) {
        return UsageError("--min_top1: give points, such as -0.5");
      }
    } else if (min_agreement_) {
      spec.set_measure(v1::TuneReport::AGREEMENT);
      spec.set_bound(*min_agreement_);
      if (*min_agreement_ < 0 || *min_agreement_ > 100) {
        return UsageError("--min_agreement: give a percentage, 0 to 100");
      }
    } else if (min_snr_) {
      spec.set_measure(v1::TuneReport::SNR);
      spec.set_bound(*min_snr_);
    }
    spec.set_objective(objective_ == "size" ? v1::TuneReport::SIZE
                                            : v1::TuneReport::LATENCY);
    if (budget_ != absl::InfiniteDuration()) {
      *spec.mutable_budget() = rpc::ToProtoDuration(budget_);
    }
    if (threads_.size() == 1) {
      spec.set_threads(threads_[0]);
    } else {
      spec.mutable_thread_counts()->Add(threads_.begin(), threads_.end());
    }
    for (const absl::string_view text :
         absl::StrSplit(cpus_, ',', absl::SkipEmpty())) {
      int32_t cpu = 0;
      if (!absl::SimpleAtoi(text, &cpu) || cpu < 0) {
        return UsageError(absl::StrCat(
            "--cpus='", cpus_,
            "': give numbers of processors with commas between, such as 0,1"));
      }
      spec.add_cpus(cpu);
    }
    spec.set_max_measured(static_cast<int32_t>(max_measured_));
    spec.set_calibration_samples(static_cast<int32_t>(calibration_samples_));
    spec.set_seed(seed_);
    spec.set_one_for_all(one_for_all_);
    spec.set_fresh(fresh_);
    return spec;
  }

  absl::Status ChooseDevices(v1::TuneSpec* spec) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> named,
                             ExpandDeviceTags(*client_, device_names_));
    for (const std::string& device : named) spec->add_devices(device);
    if (!named.empty()) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(const std::string device,
                             PickDevice(*client_, {}));
    if (device.empty()) {
      return FromServer(absl::NotFoundError(
          "no device is available to measure on; connect one "
          "(optfarm-agent --server=...), or name one that is away (--device)"));
    }
    spec->add_devices(device);
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
    return absl::OkStatus();
  }

  // A tune that has ended badly is begun anew; one that runs, or has ended, is
  // answered with.
  absl::StatusOr<v1::Tune> Create(const v1::TuneSpec& spec,
                                  const CommandContext& context) {
    std::string text = spec.SerializeAsString();
    if (fresh_) {
      absl::StrAppend(&text, " ", absl::ToUnixNanos(context.clock->Now()));
    }
    const std::string id =
        absl::StrCat("optctl-tune-", Sha256Hex(text).substr(0, kIdLength));
    v1::CreateTuneRequest request;
    *request.mutable_spec() = spec;
    for (int attempt = 1;; ++attempt) {
      request.set_client_request_id(
          attempt == 1 ? id : absl::StrCat(id, "-", attempt));
      absl::StatusOr<v1::CreateTuneResponse> response =
          client_->CreateTune(request);
      if (absl::IsFailedPrecondition(response.status())) {
        // A file may have gone since.
        OPTFARM_RETURN_IF_ERROR(
            client_->Upload(upload_.files, [](int64_t, int64_t) {}).status());
        response = client_->CreateTune(request);
      }
      OPTFARM_RETURN_IF_ERROR(response.status());
      const v1::TuneState state = response->tune().state();
      if (!response->existed() || state == v1::TUNE_RUNNING ||
          state == v1::TUNE_SUCCEEDED) {
        return std::move(*response->mutable_tune());
      }
    }
  }

  absl::StatusOr<v1::Tune> Follow(const v1::Tune& tune,
                                  const CommandContext& context) {
    if (tune.state() != v1::TUNE_RUNNING) return tune;
    RemarkOnWorkers(*client_, *context.err);
    const InterruptMessage message(absl::StrCat(
        "\nTune ", tune.tune_id(),
        " goes on; the same command, or optctl tunes "
        "show ",
        tune.tune_id(), ", tells what it finds (optctl tunes cancel ",
        tune.tune_id(), " ends it)\n"));
    ProgressLine line(context);
    FollowTuneOptions options;
    options.clock = context.clock;
    options.on_look = [&](const v1::Tune& now) { line.Show(now.progress()); };
    return FollowTune(*client_, tune.tune_id(), options);
  }

  JobFlags job_;
  std::vector<std::string> device_names_;
  std::vector<int32_t> threads_;
  int64_t max_measured_ = 16, calibration_samples_ = 0, seed_ = 1;
  std::string objective_ = "latency", out_dir_, cpus_;
  std::optional<double> min_top1_, min_agreement_, min_snr_;
  absl::Duration budget_ = absl::InfiniteDuration();
  bool one_for_all_ = false, fresh_ = false, verbose_ = false;

  std::unique_ptr<FarmClient> client_;
  JobUpload upload_;
};

}  // namespace

CommandInfo TuneCommand() {
  return {"tune",
          "Find the best variants of a model for your devices, by measuring.",
          "Measures the built-in recipes on each device, then mixes: layers "
          "that lose most by 8 bits go back to float, predicted first, judged "
          "on few samples next, and measured last. What is recommended is "
          "judged on samples that the search has not seen. Every candidate is "
          "an ordinary job. The server searches: an interrupted command takes "
          "nothing away, and given again goes on. The exit code is 6 if "
          "nothing keeps the bound on some "
          "device.\n"
          "  optctl tune model.pb --calibration=pictures/ --labels=labels.txt "
          "\\\n"
          "      --device=pi4 --device=pixel7 --min_top1=-0.5 --out_dir=tuned",
          [] { return std::unique_ptr<Command>(new Tune); }};
}

}  // namespace optfarm::client_cli
