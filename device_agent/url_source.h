// How an agent fetches files from an object store.

#ifndef OPTFARM_DEVICE_AGENT_URL_SOURCE_H_
#define OPTFARM_DEVICE_AGENT_URL_SOURCE_H_

#include <memory>

#include "rpc/blob_transfer.h"

namespace optfarm::device_agent {

// Null in the small agent for devices, whose files come from the server.
std::shared_ptr<rpc::UrlSource> MakeAgentUrlSource();

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_URL_SOURCE_H_
