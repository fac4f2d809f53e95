// optctl download: the files a job made.

#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/optimized_model.h"
#include "client_cli/jobs/out_format.h"
#include "client_cli/jobs/progress_line.h"
#include "engine/export/export_optimized.h"

namespace optfarm::client_cli {
namespace {

// What the contract allows in an artifact's name: nothing that leads out of
// the folder, whatever a worker may claim.
bool IsSafeFileName(const std::string& name) {
  return !name.empty() && name.size() <= 128 && name[0] != '.' &&
         absl::c_all_of(name, [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

// "task.log" -> "task_2.log".
std::string Numbered(const std::string& name, int number) {
  const size_t dot = name.rfind('.');
  const std::string stem = name.substr(0, dot);
  return absl::StrCat(stem, "_", number,
                      dot == std::string::npos ? "" : name.substr(dot));
}

// Each file under the name it is written to. Two tasks may have made files of
// one name: all but the first get a number.
absl::StatusOr<std::map<std::string, v1::Artifact>> FilesOf(
    const v1::Job& job) {
  std::vector<v1::Artifact> artifacts(job.artifacts().begin(),
                                      job.artifacts().end());
  for (const v1::Task& task : job.tasks()) {
    artifacts.insert(artifacts.end(), task.artifacts().begin(),
                     task.artifacts().end());
  }
  std::map<std::string, v1::Artifact> files;
  for (const v1::Artifact& artifact : artifacts) {
    if (!IsSafeFileName(artifact.name())) {
      return FromServer(absl::DataLossError(
          absl::StrCat("job ", job.job_id(), " names a file '",
                       PrintableLine(artifact.name()),
                       "', which is not a plain file name; nothing written")));
    }
    std::string name = artifact.name();
    for (int number = 2; files.contains(name); ++number) {
      if (files[name].digest().sha256() == artifact.digest().sha256()) break;
      name = Numbered(artifact.name(), number);
    }
    files[name] = artifact;
  }
  return files;
}

class Download final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("JOB", "The job's id, the beginning of one, or latest.",
                    &job_id_);
    flags->Path("out_dir", "DIR", "Folder to write to; created if missing.",
                &out_dir_);
    flags->Texts("file", "NAME",
                 "Only this file, for instance optimized.pb or report.json. "
                 "Default: all.",
                 &wanted_);
    flags->Texts("out_format", "pb|onnx|tflite",
                 "Only the optimized model, in this format: the job's own "
                 "file, or one that is made here from optimized.pb.",
                 &out_formats_);
    flags->Path("out_graph", "FILE",
                "Only the optimized model, to this file; as an ONNX or "
                "TensorFlow Lite model when the name ends in .onnx or .tflite.",
                &out_graph_);
    flags->Writes();
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (out_dir_.empty() && out_graph_.empty()) {
      return UsageError("--out_dir is missing");
    }
    OPTFARM_RETURN_IF_ERROR(CheckOutGraph(out_graph_));
    OPTFARM_ASSIGN_OR_RETURN(const OutFormats out,
                             ParseOutFormats(out_formats_, out_graph_));
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(job_id_, FindJobId(*client, job_id_));
    OPTFARM_ASSIGN_OR_RETURN(v1::Job job, client->GetJob(job_id_));
    Table table({{"file", "FILE"},
                 {"size_bytes", "SIZE", Table::Align::kRight},
                 {"sha256", "SHA-256"}});
    if (!out_graph_.empty()) {
      OPTFARM_RETURN_IF_ERROR(
          Fetch(client.get(), job, out.out_graph, out_graph_, context, &table));
    }
    if (!out_dir_.empty()) {
      OPTFARM_RETURN_IF_ERROR(
          FetchAll(client.get(), job, out.formats, context, &table));
    }
    *context.out << table.ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  // The files that are wanted into the folder.
  absl::Status FetchAll(FarmClient* client, const v1::Job& job,
                        const std::vector<v1::ModelFormat>& formats,
                        const CommandContext& context, Table* table) const {
    OPTFARM_RETURN_IF_ERROR(MakeFolders(out_dir_));
    for (const v1::ModelFormat format : formats) {
      OPTFARM_RETURN_IF_ERROR(
          Fetch(client, job, format,
                JoinPath(out_dir_, exporting::OptimizedName(format)), context,
                table));
    }
    if (!formats.empty() && wanted_.empty()) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(auto files, FilesOf(job));
    OPTFARM_RETURN_IF_ERROR(Select(job, &files));
    for (const auto& [name, artifact] : files) {
      const std::string path = JoinPath(out_dir_, name);
      ProgressLine progress(context);
      OPTFARM_RETURN_IF_ERROR(Annotate(
          client->Download(artifact.digest(), path, progress.Bytes(name)),
          absl::StrCat("while downloading ", name)));
      table->AddRow({Cell::Text(path),
                     Cell(artifact.digest().size_bytes(),
                          HumanBytes(artifact.digest().size_bytes())),
                     Cell::Text(artifact.digest().sha256())});
    }
    return absl::OkStatus();
  }

  // The optimized model in this format.
  static absl::Status Fetch(FarmClient* client, const v1::Job& job,
                            v1::ModelFormat format, const std::string& path,
                            const CommandContext& context, Table* table) {
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string line,
        FetchOptimized(client, job, format, path, context));
    if (!line.empty()) *context.err << BaseName(path) << ": " << line << "\n";
    OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
    OPTFARM_ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(path));
    table->AddRow({Cell::Text(path),
                   Cell(static_cast<int64_t>(size),
                        HumanBytes(static_cast<int64_t>(size))),
                   Cell::Text(sha256)});
    return absl::OkStatus();
  }

  absl::Status Select(const v1::Job& job,
                      std::map<std::string, v1::Artifact>* files) const {
    if (files->empty()) {
      return WithExitCode(
          absl::NotFoundError(
              absl::StrCat("job ", job_id_, " is ",
                           v1::JobState_Name(job.state()), " and has no files",
                           job.end_time().seconds() == 0 ? " yet" : "")),
          ExitCode::kNotFound);
    }
    std::vector<std::string> names;
    for (const auto& [name, artifact] : *files) names.push_back(name);
    for (const std::string& name : wanted_) {
      if (!files->contains(name)) {
        return WithExitCode(absl::NotFoundError(absl::StrCat(
                                "job ", job_id_, " has no file '", name,
                                "'; it made ", absl::StrJoin(names, ", "))),
                            ExitCode::kNotFound);
      }
    }
    if (!wanted_.empty()) {
      std::erase_if(*files, [this](const auto& file) {
        return !absl::c_linear_search(wanted_, file.first);
      });
    }
    return absl::OkStatus();
  }

  std::string job_id_, out_dir_, out_graph_;
  std::vector<std::string> wanted_, out_formats_;
};

}  // namespace

CommandInfo DownloadCommand() {
  return {"download", "Download the files of a job.",
          "Checks each file's SHA-256. Replaces existing files.\n"
          "  optctl download JOB --out_dir=out --file=optimized.pb\n"
          "  optctl download JOB --out_dir=out --out_format=onnx\n"
          "  optctl download JOB --out_graph=model.tflite",
          [] { return std::unique_ptr<Command>(new Download); }};
}

}  // namespace optfarm::client_cli
