#include "server/access/holder_tokens.h"

#include "absl/strings/str_cat.h"

namespace optfarm::server {
namespace {

constexpr size_t kMaxOfToken = 20000;
constexpr absl::Duration kForgetAfter = absl::Hours(1);
constexpr absl::Duration kForgetEvery = absl::Minutes(1);

}  // namespace

absl::Status HolderTokens::Note(const std::string& participant_id,
                                const Caller& caller, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  ForgetSilent(now);
  const auto known = token_of_.find(participant_id);
  if (known != token_of_.end() && known->second != caller.token_id) {
    if (!caller.May(v1::Access::ADMIN)) {
      return absl::PermissionDeniedError(
          absl::StrCat("the participant '", participant_id,
                       "' calls with another token; start the program again, "
                       "and it gets an id of its own"));
    }
    participants_[known->second].erase(participant_id);
  }
  Participants& of_token = participants_[caller.token_id];
  if (!of_token.contains(participant_id) && of_token.size() >= kMaxOfToken) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the token '", caller.name, "' has ", of_token.size(),
        " workers or agents that called within an hour; use more tokens"));
  }
  of_token[participant_id] = now;
  token_of_[participant_id] = caller.token_id;
  return absl::OkStatus();
}

void HolderTokens::ForgetSilent(absl::Time now) {
  if (absl::AbsDuration(now - forgot_) < kForgetEvery) return;
  forgot_ = now;
  for (auto& [token_id, participants] : participants_) {
    absl::erase_if(participants, [&](const auto& entry)
                                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                       if (now - entry.second < kForgetAfter)
                                         return false;
                                       token_of_.erase(entry.first);
                                       return true;
                                     });
  }
  absl::erase_if(participants_,
                 [](const auto& entry) { return entry.second.empty(); });
}

std::vector<std::string> HolderTokens::ParticipantsOf(
    const std::string& token_id) const {
  std::vector<std::string> ids;
  absl::MutexLock lock(&mutex_);
  const auto found = participants_.find(token_id);
  if (found == participants_.end()) return ids;
  for (const auto& [id, time] : found->second) ids.push_back(id);
  return ids;
}

}  // namespace optfarm::server
