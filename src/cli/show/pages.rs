//! The routes of several requests, since the answer to one is bounded.

use serde_json::Value;

/// Most routes of a request. The router's thread collects them between two frames.
const PAGE: u32 = 2_000;

/// Collects the routes that `query` selects, at most `limit`. `get` requests those of a query.
pub fn collect<E>(query: &str, limit: u32, mut get: impl FnMut(&str) -> Result<Value, E>) -> Result<Value, E> {
    let (mut routes, mut left, mut next) = (Vec::new(), limit, None);
    loop {
        let after = next.map(|prefix| format!("after={prefix}"));
        let limit = format!("limit={}", left.min(PAGE));
        let parameters = [query.to_owned(), limit, after.unwrap_or_default()];
        let parameters: Vec<String> = parameters.into_iter().filter(|parameter| !parameter.is_empty()).collect();
        let mut answer = get(&parameters.join("&"))?;
        let part = &mut answer["routes"];
        next = part["next"].as_str().map(str::to_owned);
        if let Some(page) = part["entries"].as_array_mut() {
            left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
            routes.append(page);
        }
        if next.is_none() || left == 0 {
            part["entries"] = Value::Array(routes);
            return Ok(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Answers by `pages`: numbers of routes, and whether more follow.
    fn collected(limit: u32, pages: &[(usize, bool)]) -> (Value, Vec<String>) {
        let (mut queries, mut pages) = (Vec::new(), pages.iter());
        let answer = collect("source=kernel", limit, |query| {
            queries.push(query.to_owned());
            let (count, is_more) = pages.next().ok_or("no further page")?;
            let next = is_more.then(|| format!("10.{}.0.0/16", queries.len()));
            Ok::<_, &str>(json!({"at_ns": 1, "routes": {"next": next, "entries": vec![json!({}); *count]}}))
        });
        (answer.expect("pages"), queries)
    }

    #[test]
    fn pages_follow_each_other_until_the_last_or_the_limit() {
        let (answer, queries) = collected(5_000, &[(2_000, true), (0, true), (700, false)]);
        let expected = ["limit=2000", "limit=2000&after=10.1.0.0/16", "limit=2000&after=10.2.0.0/16"];
        assert_eq!(queries, expected.map(|rest| format!("source=kernel&{rest}")));
        assert_eq!(answer["routes"]["entries"].as_array().map(Vec::len), Some(2_700));
        assert_eq!(answer["routes"]["next"], Value::Null);
        let (answer, queries) = collected(2_001, &[(2_000, true), (1, true)]);
        assert_eq!(queries[1], "source=kernel&limit=1&after=10.1.0.0/16");
        assert_eq!(answer["routes"]["next"], "10.2.0.0/16");
    }
}
