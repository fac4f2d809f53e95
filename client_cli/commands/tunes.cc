// optctl tunes: the tunes that the server runs or has run.

#include <algorithm>

#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/progress_line.h"
#include "client_cli/jobs/tune_follow.h"
#include "client_cli/tables/tune_text.h"

namespace optfarm::client_cli {
namespace {

constexpr int64_t kMostInOnePage = 1000;

class ListTunes final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Integer("limit", "Maximum number of tunes. Default: 50.", &limit_, 1,
                   1'000'000);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    v1::ListTunesRequest request;
    std::vector<v1::Tune> tunes;
    bool more = true;
    while (more && static_cast<int64_t>(tunes.size()) < limit_) {
      request.set_page_size(static_cast<int32_t>(std::min<int64_t>(
          limit_ - static_cast<int64_t>(tunes.size()), kMostInOnePage)));
      OPTFARM_ASSIGN_OR_RETURN(const v1::ListTunesResponse response,
                               client->ListTunes(request));
      tunes.insert(tunes.end(), response.tunes().begin(),
                   response.tunes().end());
      request.set_page_token(response.next_page_token());
      more = !response.next_page_token().empty() && response.tunes_size() > 0;
    }
    if (tunes.empty() && context.format == OutputFormat::kTable) {
      *context.out << "No tunes.\n";
      return ExitCode::kOk;
    }
    *context.out << MakeTunesTable(tunes).ToFormat(context.format);
    if (more) {
      *context.err << "There are more; --limit=N shows more than " << limit_
                   << ".\n";
    }
    return ExitCode::kOk;
  }

 private:
  int64_t limit_ = 50;
};

class ShowTune final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("TUNE", "The tune's id (optctl tunes).", &tune_id_);
    flags->Switch("wait", "Wait for the tune's end.", &wait_);
    flags->Path("out_dir", "DIR",
                "Folder for the variants to ship: NAME.pb, its recipe "
                "NAME.yaml, tune.json, and a picture for each device.",
                &out_dir_);
    flags->Switch("verbose", "Also say what the search did, step by step.",
                  &verbose_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::Tune tune, Find(*client, context));
    if (tune.state() != v1::TUNE_RUNNING) {
      if (!out_dir_.empty()) OPTFARM_RETURN_IF_ERROR(MakeFolders(out_dir_));
      return PrintTune(*client, tune, out_dir_, verbose_, context);
    }
    if (context.format != OutputFormat::kTable) {
      *context.out << MakeTunesTable({tune}).ToFormat(context.format);
      return ExitCode::kOk;
    }
    *context.out << "Tune " << tune_id_ << " runs: " << tune.progress() << ".";
    if (tune.report().measured() == 0) {
      *context.out << " Nothing has been measured yet.\n";
    } else {
      *context.out << " So far:\n" << TuneText(tune.report(), verbose_);
    }
    return ExitCode::kOk;
  }

 private:
  absl::StatusOr<v1::Tune> Find(FarmClient& client,
                                const CommandContext& context) const {
    if (!wait_) return client.GetTune(tune_id_);
    ProgressLine line(context);
    FollowTuneOptions options;
    options.clock = context.clock;
    options.on_look = [&](const v1::Tune& now) { line.Show(now.progress()); };
    return FollowTune(client, tune_id_, options);
  }

  std::string tune_id_, out_dir_;
  bool wait_ = false, verbose_ = false;
};

class CancelTune final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("TUNE", "The tune's id (optctl tunes).", &tune_id_);
    flags->Text("reason", "TEXT", "The reason, for others who look at it.",
                &reason_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    v1::CancelTuneRequest request;
    request.set_tune_id(tune_id_);
    request.set_reason(reason_);
    OPTFARM_ASSIGN_OR_RETURN(const v1::Tune tune, client->CancelTune(request));
    if (context.format != OutputFormat::kTable) {
      *context.out << MakeTunesTable({tune}).ToFormat(context.format);
      return ExitCode::kOk;
    }
    *context.out << "Tune " << tune.tune_id() << " is "
                 << TuneStateName(tune.state())
                 << (tune.state() == v1::TUNE_CANCELLED
                         ? ".\n"
                         : "; it had ended before.\n");
    return ExitCode::kOk;
  }

 private:
  std::string tune_id_, reason_;
};

}  // namespace

CommandInfo TunesCommand() {
  return {"tunes", "List tunes, newest first.",
          "A tune goes on in the server when the command that began it has "
          "ended.",
          [] { return std::unique_ptr<Command>(new ListTunes); }};
}

CommandInfo TunesShowCommand() {
  return {"tunes show", "Show what a tune has found.",
          "The exit code is 6 if nothing keeps the bound on some device.",
          [] { return std::unique_ptr<Command>(new ShowTune); }};
}

CommandInfo TunesCancelCommand() {
  return {"tunes cancel", "End a tune and its jobs.",
          "What it has found stays. Has no effect on a tune that has ended; "
          "that is not an error.",
          [] { return std::unique_ptr<Command>(new CancelTune); }};
}

}  // namespace optfarm::client_cli
