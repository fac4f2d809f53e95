#include "device_agent/url_source.h"

#include "http/url_download.h"

namespace optfarm::device_agent {

std::shared_ptr<rpc::UrlSource> MakeAgentUrlSource() {
  return http::MakeUrlSource();
}

}  // namespace optfarm::device_agent
