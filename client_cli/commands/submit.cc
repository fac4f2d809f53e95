// optctl submit: checks what can be checked here, sends what the server lacks,
// and asks it to do the job.

#include <random>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/all_devices.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/interrupt_cleanup.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/absent_server.h"
#include "client_cli/jobs/job_devices.h"
#include "client_cli/jobs/job_follow.h"
#include "client_cli/jobs/job_outcome.h"
#include "client_cli/jobs/job_progress.h"
#include "client_cli/jobs/job_request.h"
#include "client_cli/jobs/job_upload.h"
#include "client_cli/jobs/optimized_model.h"
#include "client_cli/jobs/out_format.h"
#include "client_cli/jobs/progress_line.h"
#include "client_cli/jobs/report_file.h"
#include "client_cli/tables/job_text.h"
#include "client_cli/tables/junit.h"

namespace optfarm::client_cli {
namespace {

// --device=none: measure nowhere.
constexpr char kNoDevice[] = "none";
// What a server takes to start again, with room.
constexpr absl::Duration kRestart = absl::Minutes(1);

std::string RandomRequestId() {
  std::random_device random;
  return absl::StrFormat("optctl-%08x%08x%08x%08x", random(), random(),
                         random(), random());
}

// Tells which of the devices the job will wait for. Whose token may not see
// devices is told nothing.
void RemarkOnWaits(FarmClient* client, JobUpload* upload) {
  const absl::StatusOr<std::vector<v1::Device>> devices =
      ListAllDevices(*client);
  if (!devices.ok()) return;
  const std::vector<std::string> tags(upload->spec.tags().begin(),
                                      upload->spec.tags().end());
  for (const v1::Device& device : *devices) {
    const bool is_away = device.state() == v1::Device::DISABLED ||
                         device.state() == v1::Device::QUARANTINED ||
                         device.state() == v1::Device::OFFLINE;
    if ((!is_away && !IsKeptForOthers(device, tags)) ||
        !absl::c_linear_search(upload->spec.benchmark().devices(),
                               device.info().name())) {
      continue;
    }
    upload->remarks.push_back(absl::StrCat(
        device.info().name(), " is ", v1::Device::State_Name(device.state()),
        device.state_reason().empty() ? "" : ", ", device.state_reason(),
        ": the job waits for it."));
  }
}

class Submit final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    job_.Declare(flags);
    flags->Texts("device", "NAME",
                 "Device to benchmark on (optctl devices); tag:TAG: all "
                 "devices with this tag; any:TAG: the first of them that is "
                 "free; 'none': no benchmark. Default: the first available "
                 "device.",
                 &devices_);
    flags->Text("name", "TEXT", "Name of the job.", &name_);
    flags->Texts("tag", "TAG",
                 "Tag of the job's results, such as nightly or "
                 "commit=1a2b3c4.",
                 &tags_);
    flags->Number("precision",
                  "Run until the 95 % interval of each median is within this "
                  "many percent on both sides.",
                  &precision_percent_);
    flags->Texts("engine", "NAME",
                 "Also measure with this runtime where a device has it: "
                 "onnxruntime or tflite. The result is written in its format, "
                 "as if by --out_format=pb,onnx.",
                 &engines_);
    flags->Text("cpus", "A,B",
                "CPUs of the device to run on. Default: the agent's.", &cpus_);
    flags->Duration("cool_down",
                    "Maximum time to wait until a device is cool and idle. "
                    "Default: the agent's.",
                    &cool_down_);
    flags->Switch("no_cache",
                  "Run the job even if the same work has been done before.",
                  &no_cache_);
    flags->Text("request_id", "ID",
                "Makes retries safe: the same id returns the same job. "
                "Default: random, which covers optctl's own retries.",
                &request_id_);
    flags->Text("webhook", "URL",
                "Address that the server notifies when the job ends; the "
                "server's operator must allow the host.",
                &webhook_);
    flags->Switch("wait", "Wait until the job ends and show the outcome.",
                  &wait_);
    flags->Duration("timeout",
                    "With --wait, maximum time to wait; then exit with 124. "
                    "The job continues. Default: until it ends.",
                    &timeout_);
    flags->Duration("retry_for",
                    "Maximum time to try again if the server cannot be "
                    "reached, such as during a restart. Default: with --wait "
                    "a minute, and ten once the job is accepted; otherwise "
                    "none.",
                    &retry_for_);
    flags->Path("junit", "FILE",
                "With --wait, also write the outcome as JUnit XML: a test "
                "case for each task, each gate and each verdict.",
                &junit_);
    flags->Path("out_report", "FILE",
                absl::StrCat("With --wait. ", kOutReportHelp), &out_report_);
    flags->Writes();
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (timeout_ < absl::InfiniteDuration() && !wait_) {
      return UsageError("--timeout needs --wait");
    }
    if (!junit_.empty() && !wait_) {
      return UsageError("--junit needs --wait");
    }
    if (!out_report_.empty() && !wait_) {
      return UsageError("--out_report needs --wait");
    }
    if (!job_.out_graph.empty() && !wait_) {
      return UsageError(
          "--out_graph needs --wait; or get the file later (optctl download)");
    }
    // Before the job: nobody wants to wait an hour for that.
    OPTFARM_RETURN_IF_ERROR(CheckOutGraph(job_.out_graph));
    if (!out_report_.empty()) {
      OPTFARM_RETURN_IF_ERROR(CheckReportPlace("--out_report", out_report_));
    }
    if (!junit_.empty()) {
      OPTFARM_RETURN_IF_ERROR(
          Annotate(AtomicFile::Create(junit_).status(), "--junit"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const JobRequest request, CheckJobFlags(job_));
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_RETURN_IF_ERROR(
        Patiently(context, [&] { return client->CheckServer(); }));
    OPTFARM_ASSIGN_OR_RETURN(JobUpload upload, Prepare(request, context));
    OPTFARM_RETURN_IF_ERROR(Describe(&upload.spec));
    OPTFARM_RETURN_IF_ERROR(
        Patiently(context, [&] { return AddDevices(client.get(), &upload); }));
    for (const std::string& remark : upload.remarks) {
      *context.err << remark << "\n";
    }
    OPTFARM_RETURN_IF_ERROR(Patiently(
        context, [&] { return Send(client.get(), upload, context); }));
    OPTFARM_ASSIGN_OR_RETURN(v1::SubmitJobResponse accepted,
                             Ask(client.get(), upload, context));
    return Finish(client.get(), accepted, request.out_graph_format, context);
  }

 private:
  static absl::StatusOr<JobUpload> Prepare(const JobRequest& request,
                                           const CommandContext& context) {
    ProgressLine line(context);
    return MakeJobUpload(request, [&line](int64_t done, int64_t total) {
      line.Show(absl::StrCat("reading ", done, " of ", total, " files"));
    });
  }

  absl::Status Patiently(const CommandContext& context,
                         absl::FunctionRef<absl::Status()> call) const {
    absl::Duration retry_for = retry_for_;
    if (retry_for == absl::ZeroDuration() && wait_) retry_for = kRestart;
    return CallThroughAbsence(context, retry_for, call);
  }

  absl::Status Describe(v1::JobSpec* spec) const {
    spec->set_name(name_);
    for (const std::string& tag : tags_) spec->add_tags(tag);
    spec->set_no_cache(no_cache_);
    return SetConditions(spec->mutable_benchmark());
  }

  // Nothing has changed where it fails.
  absl::Status AddDevices(FarmClient* client, JobUpload* upload) {
    v1::JobSpec& spec = upload->spec;
    if (absl::c_linear_search(devices_, kNoDevice)) {
      if (devices_.size() > 1) {
        return UsageError(
            "--device: 'none' cannot be combined with other devices");
      }
      if (!engines_.empty()) {
        return UsageError("--engine measures, and --device=none forbids it");
      }
      spec.clear_benchmark();
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> devices,
                             ExpandDeviceTags(*client, devices_));
    for (const std::string& device : devices) {
      spec.mutable_benchmark()->add_devices(device);
    }
    if (!devices_.empty()) {
      RemarkOnWaits(client, upload);
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::string device,
                             PickDevice(*client, tags_, engines_));
    if (device.empty()) {
      spec.clear_benchmark();
      upload->remarks.push_back(
          engines_.empty()
              ? "No device is available: there will be no benchmark (optctl "
                "devices)."
              : "No device with this engine is available: there will be no "
                "benchmark (optctl devices).");
    } else {
      spec.mutable_benchmark()->add_devices(device);
      upload->remarks.push_back(absl::StrCat("Benchmarking on ", device,
                                             " (--device selects another)."));
    }
    return absl::OkStatus();
  }

  // How to measure, where it was said.
  absl::Status SetConditions(v1::BenchmarkSpec* benchmark) const {
    if (precision_percent_) {
      if (!(*precision_percent_ > 0 && *precision_percent_ < 100)) {
        return UsageError(
            "--precision: give a percentage above 0 and below 100");
      }
      benchmark->set_precision(*precision_percent_ / 100);
    }
    for (const std::string& engine : engines_) {
      if (absl::StrContains(engine, ':')) {
        return UsageError(absl::StrCat(
            "--engine: give the engine's name alone, such as onnxruntime; the "
            "device's agent knows where its library is (optfarm-agent --engine="
            "onnxruntime:FILE)"));
      }
      benchmark->add_engines(engine);
    }
    for (const absl::string_view word :
         absl::StrSplit(cpus_, ',', absl::SkipEmpty())) {
      int32_t cpu = 0;
      if (!absl::SimpleAtoi(word, &cpu) || cpu < 0) {
        return UsageError("--cpus: give numbers with commas, such as 4,5,6,7");
      }
      benchmark->add_cpus(cpu);
    }
    if (cool_down_ > absl::ZeroDuration()) {
      benchmark->mutable_cool_down()->set_seconds(
          absl::ToInt64Seconds(absl::Ceil(cool_down_, absl::Seconds(1))));
    }
    return absl::OkStatus();
  }

  static absl::Status Send(FarmClient* client, const JobUpload& upload,
                           const CommandContext& context) {
    ProgressLine line(context);
    OPTFARM_ASSIGN_OR_RETURN(
        const int64_t sent,
        client->Upload(upload.files, line.Bytes("sending")));
    if (sent > 0) {
      line.Remark(absl::StrCat("Sent ", HumanBytes(sent), "."));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::SubmitJobResponse> Ask(FarmClient* client,
                                            const JobUpload& upload,
                                            const CommandContext& context) {
    v1::SubmitJobRequest request;
    request.set_client_request_id(request_id_.empty() ? RandomRequestId()
                                                      : request_id_);
    *request.mutable_spec() = upload.spec;
    request.set_webhook(webhook_);
    ProgressLine line(context);
    absl::StatusOr<v1::SubmitJobResponse> accepted;
    OPTFARM_RETURN_IF_ERROR(Patiently(context, [&] {
      accepted = SubmitWithFiles(*client, request, upload.files,
                                 line.Bytes("sending"));
      return accepted.status();
    }));
    return accepted;
  }

  absl::StatusOr<ExitCode> Finish(FarmClient* client,
                                  const v1::SubmitJobResponse& accepted,
                                  v1::ModelFormat format,
                                  const CommandContext& context) {
    const v1::Job& job = accepted.job();
    if (!wait_) {
      if (context.format != OutputFormat::kTable) {
        *context.out << MakeJobsTable({job}).ToFormat(context.format);
      } else {
        *context.out << "Job " << job.job_id() << " is "
                     << v1::JobState_Name(job.state())
                     << (accepted.existed() ? " (it was submitted before)" : "")
                     << ".\nFollow it with: optctl watch " << job.job_id()
                     << "\n";
      }
      return ExitCode::kOk;
    }
    *context.err << "Job " << job.job_id() << " is "
                 << v1::JobState_Name(job.state()) << "." << std::endl;
    OPTFARM_ASSIGN_OR_RETURN(v1::Job ended, Wait(client, job, context));
    JobOutcome outcome = OutcomeOf(std::move(ended));
    if (!junit_.empty()) {
      OPTFARM_RETURN_IF_ERROR(
          WriteFileAtomically(junit_, JUnitXml(outcome.job)));
    }
    if (!out_report_.empty()) {
      OPTFARM_RETURN_IF_ERROR(
          Patiently(context, [&] { return WriteReport(client, outcome.job); }));
    }
    const absl::Status kept = Patiently(
        context, [&] { return Keep(client, format, context, &outcome); });
    const ExitCode code = PrintOutcome(outcome, context);
    if (code == ExitCode::kOk && !kept.ok()) return kept;
    return code;
  }

  // The result to where the user wants it, also when a gate failed.
  absl::Status Keep(FarmClient* client, v1::ModelFormat format,
                    const CommandContext& context, JobOutcome* outcome) const {
    if (job_.out_graph.empty() || !outcome->job.has_report()) {
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string about,
        FetchOptimized(client, outcome->job, format, job_.out_graph, context));
    outcome->where.push_back(absl::StrCat("Optimized graph: ", job_.out_graph,
                                          about.empty() ? "" : ": ", about));
    return absl::OkStatus();
  }

  absl::Status WriteReport(FarmClient* client, const v1::Job& job) const {
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string text,
        ReportTextFromServer(job, ReportFormatOf(out_report_), *client));
    return WriteFileAtomically(out_report_, text);
  }

  absl::StatusOr<v1::Job> Wait(FarmClient* client, const v1::Job& job,
                               const CommandContext& context) {
    RemarkOnWorkers(*client, *context.err);
    const InterruptMessage message(GoesOnText(job.job_id()));
    ProgressLine line(context);
    JobProgress progress(job, context.clock->Now());
    bool lost = false;
    FollowOptions options;
    options.timeout = timeout_;
    if (retry_for_ > absl::ZeroDuration()) options.patience = retry_for_;
    options.clock = context.clock;
    options.on_event = [&](const v1::JobEvent& event) {
      lost = false;
      progress.Add(event);
      line.Show(progress.Line(context.clock->Now()));
    };
    options.on_lost = [&](const absl::Status& status) {
      if (!lost) {
        line.Remark(
            absl::StrCat("Lost the connection to the server, retrying: ",
                         std::string(status.message())));
      }
      lost = true;
    };
    return FollowJob(client, job.job_id(), options);
  }

  std::vector<std::string> tags_;
  std::optional<double> precision_percent_;
  std::string cpus_;
  absl::Duration cool_down_;
  JobFlags job_;
  std::vector<std::string> engines_;
  std::vector<std::string> devices_;
  std::string name_, request_id_, junit_, out_report_, webhook_;
  bool no_cache_ = false;
  bool wait_ = false;
  absl::Duration timeout_ = absl::InfiniteDuration();
  // Zero: not said.
  absl::Duration retry_for_;
};

}  // namespace

CommandInfo SubmitCommand() {
  return {
      "submit", "Submit a model for optimization and benchmarks on the farm.",
      "Uploads only files that the server does not have. With --wait the "
      "command prints one row for each variant, device and thread count, and "
      "a verdict; the exit code is 6 if the result missed a gate, 7 if the "
      "model or its data cannot work.\n"
      "  optctl submit model.pb --recipe=int8 --calibration=images/ --wait\n"
      "  optctl submit model.pb --recipe=int8 --calibration=image=x.npy \\\n"
      "      --labels=labels.txt --device=pi4 --threads=1,4 --wait\n"
      "  optctl submit model.onnx --recipe=int8 --calibration=images/ --wait "
      "\\\n"
      "      --out_graph=model_int8.tflite",
      [] { return std::unique_ptr<Command>(new Submit); }};
}

}  // namespace optfarm::client_cli
