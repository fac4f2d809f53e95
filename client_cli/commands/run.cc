// optctl run: the job that submit sends to a farm, done here and now. No
// server, worker or agent takes part.

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/interrupt_cleanup.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/job_outcome.h"
#include "client_cli/jobs/job_request.h"
#include "client_cli/jobs/optimized_model.h"
#include "client_cli/jobs/out_format.h"
#include "client_cli/jobs/progress_line.h"
#include "client_cli/jobs/report_file.h"
#include "client_cli/local/engine_variants.h"
#include "client_cli/local/laid_out_model.h"
#include "client_cli/local/local_optimize.h"
#include "client_cli/local/local_report.h"
#include "engine/benchmark/benchmark.h"
#include "engine/verdict/gates.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {
namespace {

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0')
    return "here";
  return name;
}

// Copies one of the files the job made to where the user wants it.
absl::Status CopyFile(const std::string& from, const std::string& to) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(from));
  return WriteFileAtomically(to, bytes);
}

class RunHere final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    job_.Declare(flags);
    flags->Path("out_dir", "DIR",
                "Folder for all files: optimized.pb, report.json, "
                "transforms.txt, calibration.log. Created if missing.",
                &out_dir_);
    flags->Path("out_report", "FILE", kOutReportHelp, &out_report_);
    flags->Writes();
    flags->Switch(
        "measure",
        "Also measure speed and memory. Default: true; --measure=false "
        "disables it.",
        &measure_);
    flags->Integer("min_runs", "Minimum number of measured runs. Default: 50.",
                   &min_runs_, 1, 1'000'000);
    flags->Duration("max_time",
                    "Maximum time for one variant with one thread count. "
                    "Default: 60s.",
                    &max_time_);
    flags->Texts("engine", "NAME:FILE", kEngineHelp, &engine_flags_);
    flags->Switch("verbose",
                  "Print a line for each step of the work: seconds, seconds of "
                  "all processors together, and the most memory held.",
                  &verbose_);
    flags->Text("optimize_into", "DIR", "", &optimize_into_);
    flags->Hidden();
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(engines_, ParseEngineFlags(engine_flags_));
    if (!engines_.empty() && !measure_) {
      return UsageError("--engine measures, and --measure=false forbids it");
    }
    if (!optimize_into_.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(JobRequest request,
                               CheckJobFlags(job_, optimize_into_));
      AddEngineFormats(engines_, &request.work.out_formats);
      OPTFARM_RETURN_IF_ERROR(
          OptimizeInto(request, optimize_into_, verbose_, context));
      return ExitCode::kOk;
    }
    OPTFARM_RETURN_IF_ERROR(CheckPlaces());
    OPTFARM_ASSIGN_OR_RETURN(const std::string folder,
                             MakeTemporaryFolder("optctl_run_"));
    const InterruptCleanup cleanup(folder);
    OPTFARM_ASSIGN_OR_RETURN(const JobRequest request,
                             CheckJobFlags(job_, folder));
    for (const std::string& remark : request.remarks) {
      *context.err << PrintableLine(remark) << "\n";
    }
    v1::Job job;
    SetTime(context, job.mutable_create_time());
    *job.mutable_start_time() = job.create_time();
    const absl::Status status = Work(request, folder, context, &job);
    if (!status.ok()) SetFailure(status, job.mutable_failure());
    job.set_state(job.has_failure() ? v1::FAILED : v1::SUCCEEDED);
    SetTime(context, job.mutable_end_time());
    JobOutcome outcome = OutcomeOf(std::move(job));
    outcome.where = engine_remarks_;
    OPTFARM_RETURN_IF_ERROR(KeepReport(request, FilesFolder(folder), &outcome));
    const absl::Status kept =
        Keep(FilesFolder(folder), request.out_graph_format, &outcome);
    const ExitCode code = PrintOutcome(outcome, context);
    if (code == ExitCode::kOk && !kept.ok()) return kept;
    return code;
  }

 private:
  // Whether files can be written where they are wanted. Asked before the work,
  // which may take long.
  absl::Status CheckPlaces() const {
    if (!out_dir_.empty()) {
      OPTFARM_RETURN_IF_ERROR(Annotate(MakeFolders(out_dir_), "--out_dir"));
    }
    if (!out_report_.empty()) {
      OPTFARM_RETURN_IF_ERROR(CheckReportPlace("--out_report", out_report_));
    }
    if (!job_.out_formats.empty() && out_dir_.empty() &&
        job_.out_graph.empty()) {
      return UsageError("--out_format needs --out_dir or --out_graph");
    }
    return CheckOutGraph(job_.out_graph);
  }

  absl::Status Work(const JobRequest& request, const std::string& folder,
                    const CommandContext& context, v1::Job* job) {
    std::vector<std::string> words = context.words;
    // Standard input has been read already.
    for (std::string& word : words) {
      if (word == "-") word = job_.model;
      if (word == "--out_graph=-") word = "--out_graph=" + job_.out_graph;
      if (word == "--out_report=-") word = "--out_report=" + out_report_;
    }
    words.push_back(absl::StrCat("--optimize_into=", folder));
    OPTFARM_ASSIGN_OR_RETURN(*job->mutable_report(),
                             OptimizeInChild(words, folder));
    *job->mutable_gates() = job->report().gates();
    std::vector<v1::Measurement> measurements;
    if (measure_) {
      ProgressLine line(context);
      OPTFARM_ASSIGN_OR_RETURN(
          measurements,
          Measure(request, FilesFolder(folder), job->report(), &line));
    }
    for (v1::GateResult& gate :
         verdict::SpeedGates(request.work.recipe, HostName(), measurements)) {
      *job->add_gates() = std::move(gate);
    }
    job->mutable_measurements()->Add(measurements.begin(), measurements.end());
    const std::vector<v1::GateResult> gates(job->gates().begin(),
                                            job->gates().end());
    if (auto failure = verdict::GateFailure(gates)) {
      *job->mutable_failure() = *std::move(failure);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<v1::Measurement>> Measure(
      const JobRequest& request, const std::string& folder,
      const v1::Report& report, ProgressLine* line) {
    benchmark::BenchmarkRequest work;
    benchmark::BenchmarkVariant original;
    original.name = "float";
    original.graph_path = request.work.model_path;
    original.load_graph = [](const std::string& path) {
      return LoadLaidOut(path, {});
    };
    original.inputs.assign(report.inputs().begin(), report.inputs().end());
    for (const v1::TensorSpec& output : report.outputs()) {
      original.outputs.push_back(output.name());
    }
    benchmark::BenchmarkVariant optimized = original;
    optimized.name = request.work.recipe.name();
    optimized.graph_path = JoinPath(folder, "optimized.pb");
    work.variants = {original, optimized};
    OPTFARM_RETURN_IF_ERROR(AddEngines(request, folder, &work));
    work.threads.assign(request.threads.begin(), request.threads.end());
    work.min_runs = static_cast<int>(min_runs_);
    work.max_time = max_time_;
    work.device = HostName();
    work.build_version = OPTFARM_VERSION;
    const auto show = [line](const benchmark::BenchmarkProgress& progress) {
      line->Show(absl::StrFormat("benchmark %.0f%% %s", progress.fraction * 100,
                                 progress.stage));
      return absl::OkStatus();
    };
    MeasuredBeside measured;
    OPTFARM_ASSIGN_OR_RETURN(
        measured.measurements,
        benchmark::RunBenchmark(work, show, &measured.engines));
    AddWhatWasNotWritten(folder);
    return measured.measurements;
  }

  // Beside each variant the same one in each engine whose format it has.
  absl::Status AddEngines(const JobRequest& request, const std::string& folder,
                          benchmark::BenchmarkRequest* work) const {
    const std::vector<std::pair<std::string, std::string>> ours = {
        {work->variants[0].name, request.work.model_path},
        {work->variants[1].name, ""}};
    for (const benchmark::EngineOptions& engine : engines_) {
      for (const auto& [name, original] : ours) {
        const std::string path =
            original.empty() ? ExportedFor(engine, folder) : original;
        if (!IsModelOfEngine(engine.name, path) || !FileSize(path).ok()) {
          continue;
        }
        OPTFARM_ASSIGN_OR_RETURN(work->variants.emplace_back(),
                                 EngineVariant(engine, name, path));
      }
    }
    return absl::OkStatus();
  }

  static std::string ExportedFor(const benchmark::EngineOptions& engine,
                                 const std::string& folder) {
    return JoinPath(
        folder,
        absl::StrCat("optimized", benchmark::EngineModelEnding(engine.name)));
  }

  void AddWhatWasNotWritten(const std::string& folder) {
    for (const benchmark::EngineOptions& engine : engines_) {
      if (FileSize(ExportedFor(engine, folder)).ok()) continue;
      engine_remarks_.push_back(
          absl::StrCat(engine.name, ": the result cannot be written as ",
                       FormatWord(FormatOfEngine(engine.name)),
                       "; exports in the report say why"));
    }
  }

  static void SetTime(const CommandContext& context,
                      google::protobuf::Timestamp* time) {
    const int64_t micros = absl::ToUnixMicros(context.clock->Now());
    time->set_seconds(micros / 1'000'000);
    time->set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
  }

  static void SetFailure(const absl::Status& status, v1::Failure* failure) {
    failure->set_kind(ExitCodeOf(status) == ExitCode::kUsage
                          ? v1::Failure::USER
                          : v1::Failure::INTERNAL);
    failure->set_code(absl::StatusCodeToString(status.code()));
    failure->set_message(std::string(status.message()));
  }

  absl::Status KeepReport(const JobRequest& request, const std::string& folder,
                          JobOutcome* outcome) const {
    if (out_report_.empty()) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string text,
        LocalReport(request, folder, ReportFormatOf(out_report_),
                    outcome->job));
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(out_report_, text));
    outcome->where.push_back(absl::StrCat("Report: ", out_report_));
    return absl::OkStatus();
  }

  absl::Status Keep(const std::string& folder, v1::ModelFormat format,
                    JobOutcome* outcome) const {
    const bool has_report = outcome->job.has_report();
    if (!out_dir_.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                               ListFolder(folder));
      for (const std::string& name : names) {
        OPTFARM_RETURN_IF_ERROR(
            CopyFile(JoinPath(folder, name), JoinPath(out_dir_, name)));
      }
      if (!names.empty()) {
        outcome->where.push_back(absl::StrCat("Written to ", out_dir_, ": ",
                                              absl::StrJoin(names, ", ")));
      }
    }
    if (!job_.out_graph.empty() && has_report) {
      OPTFARM_ASSIGN_OR_RETURN(const std::string about,
                               WriteOptimized(folder, outcome->job.report(),
                                              format, job_.out_graph));
      outcome->where.push_back(absl::StrCat("Optimized graph: ", job_.out_graph,
                                            about.empty() ? "" : ": ", about));
    }
    if (job_.out_graph.empty() && out_dir_.empty() && has_report) {
      outcome->where.push_back(
          "Nothing was saved; use --out_graph=FILE or --out_dir=DIR.");
    }
    return absl::OkStatus();
  }

  JobFlags job_;
  std::vector<std::string> engine_flags_;
  std::vector<benchmark::EngineOptions> engines_;
  // What there is to say of them.
  std::vector<std::string> engine_remarks_;
  std::string out_dir_, out_report_, optimize_into_;
  bool measure_ = true;
  bool verbose_ = false;
  int64_t min_runs_ = 50;
  absl::Duration max_time_ = absl::Seconds(60);
};

}  // namespace

CommandInfo RunCommand() {
  return {"run",
          "Optimize and benchmark a model on this machine, without a server.",
          "Prints the same table and returns the same exit codes as submit "
          "--wait. The optimized graph is written even if a gate failed.\n"
          "  optctl run model.pb --recipe=int8 --calibration=images/ \\\n"
          "      --labels=labels.txt --out_graph=model_int8.pb\n"
          "  optctl run model.onnx --recipe=int8 --calibration=images/ \\\n"
          "      --out_graph=model_int8.tflite",
          [] { return std::unique_ptr<Command>(new RunHere); }};
}

}  // namespace optfarm::client_cli
