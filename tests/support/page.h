// A page of HTML that is well-formed XML too, as a tree: for tests of what eval's report holds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

struct PageElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // all of it, that of elements inside too
  std::vector<PageElement> children;

  std::string attribute(const std::string& key) const;  // "": it has none
  bool has_class(const std::string& word) const;
};

// The root. std::runtime_error with the place where it is not well-formed.
PageElement read_page(std::string_view page);

// All elements for which `wanted` holds, in the order of the page.
std::vector<const PageElement*> find_all(const PageElement& root,
                                         const std::function<bool(const PageElement&)>& wanted);
std::vector<const PageElement*> find_all(const PageElement& root, const std::string& name,
                                         const std::string& of_class = "");

}  // namespace rk
