//! Users and groups of this machine, by name or number.

use std::fs;

/// Returns the number of `user`, which is a name in `/etc/passwd` or a number.
#[must_use]
pub fn user_number(user: &str) -> Option<u32> {
    number(user, "/etc/passwd")
}

/// Returns the number of `group`, which is a name in `/etc/group` or a number.
#[must_use]
pub fn group_number(group: &str) -> Option<u32> {
    number(group, "/etc/group")
}

/// Returns the name of the user with this number, or the number where `/etc/passwd` does not have it.
#[must_use]
pub fn user_name(number: u32) -> String {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(number, &text).map_or_else(|| number.to_string(), str::to_owned)
}

fn name_of(number: u32, text: &str) -> Option<&str> {
    let mut lines = text.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| fields.next().filter(|_| fields.nth(1).is_some_and(|is| is.parse() == Ok(number))))
}

/// The groups of the user with this number: its own in `/etc/passwd`, and those in `/etc/group` that name it.
#[must_use]
pub fn groups_of(user: u32) -> Vec<u32> {
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    groups_in(user, &read("/etc/passwd"), &read("/etc/group"))
}

fn groups_in(user: u32, passwd: &str, groups: &str) -> Vec<u32> {
    let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let number = |field: Option<&String>| field.and_then(|field| field.parse::<u32>().ok());
    let Some(account) = passwd.lines().map(fields).find(|account| number(account.get(2)) == Some(user)) else {
        return Vec::new();
    };
    let names = |group: &Vec<String>| group.get(3).is_some_and(|list| list.split(',').any(|name| name == account[0]));
    let named = groups.lines().map(fields).filter(names).filter_map(|group| number(group.get(2)));
    number(account.get(3)).into_iter().chain(named).collect()
}

/// Both files have the name in the first field and the number in the third (passwd(5), group(5)).
fn number(name: &str, file: &str) -> Option<u32> {
    name.parse().ok().or_else(|| find(name, &fs::read_to_string(file).unwrap_or_default()))
}

fn find(name: &str, text: &str) -> Option<u32> {
    let mut lines = text.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_that_of_the_account_and_those_that_name_it() {
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\n";
        let groups = "root:x:0:\nops:x:50:bob,ann\nadm:x:4:annie\nbroken\nnet:x:60:ann\n";
        assert_eq!(groups_in(1000, passwd, groups), [1000, 50, 60]);
        assert_eq!(groups_in(0, passwd, groups), [0]);
        assert_eq!(groups_in(7, passwd, groups), [0; 0], "without an account, no group");
    }

    #[test]
    fn account_is_found_by_name_or_number() {
        assert_eq!((user_number("root"), group_number("root"), user_number("7")), (Some(0), Some(0), Some(7)));
        assert_eq!(
            (user_name(0), name_of(3, "a:x:1:\nbb:x:3:\n"), name_of(4, "a:x:1:\nb\n")),
            ("root".to_owned(), Some("bb"), None)
        );
        assert_eq!(find("b", "a:x:1:\nb:x:22:a,c\nbb:x:3:\n"), Some(22));
        assert_eq!((find("", "a:x:1:\n"), find("x", "a:x:1:\n"), user_number("no-such-user")), (None, None, None));
    }
}
