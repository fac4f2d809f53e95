// optctl token: who may use the server, and for what.

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/table.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

absl::StatusOr<v1::Access::Scope> ParseScope(const std::string& word) {
  v1::Access::Scope scope = v1::Access::SCOPE_UNSPECIFIED;
  if (v1::Access::Scope_Parse(absl::AsciiStrToUpper(word), &scope) &&
      scope != v1::Access::SCOPE_UNSPECIFIED) {
    return scope;
  }
  return UsageError(absl::StrCat(
      "--scope: '", word, "' is none of submit, read, work, device, admin"));
}

std::string ScopeText(const v1::Token& token) {
  std::vector<std::string> names;
  for (const int scope : token.scopes()) {
    names.push_back(absl::AsciiStrToLower(
        v1::Access::Scope_Name(static_cast<v1::Access::Scope>(scope))));
  }
  return absl::StrJoin(names, ",");
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  return absl::FormatTime(absl::RFC3339_sec, rpc::FromTimestamp(time),
                          absl::UTCTimeZone());
}

class TokenCreate final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("NAME", "Who or what will use it.", &name_);
    flags->Texts("scope", "SCOPE",
                 "What it allows: submit, read, work, device or admin.",
                 &scopes_);
    flags->Text("project", "NAME",
                "The project whose jobs, files and results it gives access "
                "to; only with the scopes submit and read. Default: default.",
                &project_);
    flags->Duration("lifetime",
                    "How long it is valid, from a minute to ten years. "
                    "Default: 90 days.",
                    &lifetime_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    v1::CreateTokenRequest request;
    request.set_name(name_);
    request.set_project(project_);
    for (const std::string& word : scopes_) {
      OPTFARM_ASSIGN_OR_RETURN(const v1::Access::Scope scope, ParseScope(word));
      request.add_scopes(scope);
    }
    if (scopes_.empty()) return UsageError("--scope is missing");
    request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(lifetime_));
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::CreateTokenResponse response,
                             client->CreateToken(request));
    if (context.format == OutputFormat::kJson) {
      *context.out << ProtoToJson(response);
      return ExitCode::kOk;
    }
    *context.out << response.secret() << "\n";
    *context.err << "Token " << response.token().token_id()
                 << " may be used until "
                 << TimeText(response.token().expire_time())
                 << ". The secret is shown only once; keep it in a file for "
                    "--token_file.\n";
    return ExitCode::kOk;
  }

 private:
  std::string name_;
  std::vector<std::string> scopes_;
  std::string project_;
  absl::Duration lifetime_ = absl::Hours(24 * 90);
};

Table MakeTokensTable(const v1::ListTokensResponse& response, absl::Time now) {
  Table table({{"token_id", "TOKEN"},
               {"name", "NAME"},
               {"scopes", "SCOPES"},
               {"project", "PROJECT"},
               {"state", "STATE"},
               {"create_time", "CREATED"},
               {"expire_time", "EXPIRES"}});
  for (const v1::Token& token : response.tokens()) {
    const char* state = token.has_revoke_time() ? "REVOKED"
                        : rpc::FromTimestamp(token.expire_time()) < now
                            ? "EXPIRED"
                            : "LIVE";
    table.AddRow({Cell::Text(token.token_id()), Cell::Text(token.name()),
                  Cell::Text(ScopeText(token)), Cell::Text(token.project()),
                  Cell::Text(state), Cell::Text(TimeText(token.create_time())),
                  Cell::Text(TimeText(token.expire_time()))});
  }
  return table;
}

class TokenList final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {}

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::ListTokensResponse response,
                             client->ListTokens());
    if (response.tokens().empty() && context.format == OutputFormat::kTable) {
      *context.out << "No tokens but the server's own.\n";
      return ExitCode::kOk;
    }
    *context.out << MakeTokensTable(response, context.clock->Now())
                        .ToFormat(context.format);
    return ExitCode::kOk;
  }
};

class TokenRevoke final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("TOKEN", "The token's id (optctl token list shows it).",
                    &token_id_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::Token token,
                             client->RevokeToken(token_id_));
    if (context.format == OutputFormat::kJson) {
      *context.out << ProtoToJson(token);
    } else {
      *context.out << "Token " << token.token_id() << " (" << token.name()
                   << ") is revoked.\n";
    }
    return ExitCode::kOk;
  }

 private:
  std::string token_id_;
};

}  // namespace

CommandInfo TokenCreateCommand() {
  return {"token create", "Create a token for the server.",
          "Prints the secret once. Requires a token with scope admin, or the "
          "server's own.\n"
          "  optctl token create ci --scope=submit --scope=read > ci.token",
          [] { return std::unique_ptr<Command>(new TokenCreate); }};
}

CommandInfo TokenListCommand() {
  return {"token list", "List tokens and what they allow.",
          "The server does not store secrets, so it cannot show them.",
          [] { return std::unique_ptr<Command>(new TokenList); }};
}

CommandInfo TokenRevokeCommand() {
  return {"token revoke", "Revoke a token.", "",
          [] { return std::unique_ptr<Command>(new TokenRevoke); }};
}

}  // namespace optfarm::client_cli
