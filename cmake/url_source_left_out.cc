// What the small agent for devices has in place of an HTTP client.

#include "device_agent/url_source.h"

namespace optfarm::device_agent {

std::shared_ptr<rpc::UrlSource> MakeAgentUrlSource() { return nullptr; }

}  // namespace optfarm::device_agent
